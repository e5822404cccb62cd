"""The panel door: pages for administrators, every act of theirs through the gate."""
