// Keys that are pressed alone, as / and M: they get in the way of those who speak to their computer, who switch them off.
export const ALONE = "trellis-single-keys"; // in the browser's memory: "off" where such keys do nothing

export const isAlone = () => localStorage.getItem(ALONE) !== "off";
