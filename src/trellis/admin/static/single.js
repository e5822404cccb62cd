// Single-key shortcuts such as / and M. They get in the way of people who dictate to their computer, who can switch them off.
export const ALONE = "trellis-single-keys"; // the name in localStorage: "off" if they are switched off

export const isAlone = () => localStorage.getItem(ALONE) !== "off";
