// Asks axe for what is wrong with a page, by some rules. Returned are the violations, and the colours that were found right;
// or null, if axe is not in the page yet.
//
// To measure the contrast of texts takes axe longer than everything else together. It depends on nothing but the colour and the
// font of a text and on what its element and those around it are painted with: where these are `known` to be right, it is not
// measured again. It is measured wherever an element was moved out of its place, and could be over something else. What has no text
// of its own is left out at once: axe comes to that too, but only when it knows where the element is and whether it is to be seen.
async ({runOnly, known}) => {
    if (!("axe" in window)) return null;
    const right = new Set(known), grounds = new Map([[null, ""]]), read = new WeakMap();

    const canHaveText = element => element.matches("input, select, textarea")
        || [...element.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.nodeValue.trim() !== "");
    const groundOf = element => {
        if (!grounds.has(element)) {
            const {position, transform, backgroundColor, backgroundImage, opacity, filter, mixBlendMode} = getComputedStyle(element);
            const around = groundOf(element.parentElement);
            const moved = around === null || transform !== "none" || ["absolute", "fixed"].includes(position);
            const painted = [backgroundColor, backgroundImage, opacity, filter, mixBlendMode].join(" ");
            grounds.set(element, moved ? null : around + (painted === "rgba(0, 0, 0, 0) none 1 none normal" ? "" : painted + "/"));
        }
        return grounds.get(element);
    };
    const coloursOf = element => {
        const ground = groundOf(element);
        const {color, fontSize, fontWeight, textShadow} = getComputedStyle(element);
        const colours = ground === null ? null : [color, fontSize, fontWeight, textShadow, ground].join(" ");
        read.set(element, colours);
        return colours;
    };

    const TARGETS = "a, area, button, input, select, textarea, summary, [contenteditable], [tabindex][role]:not([role=region])";
    const SIZE = 24;
    const roomOf = element => {
        const {left, right, top, bottom, width, height} = element.getBoundingClientRect();
        const wide = Math.max(SIZE - width, 0) / 2, high = Math.max(SIZE - height, 0) / 2;
        return {element, left: left - wide, right: right + wide, top: top - high, bottom: bottom + high};
    };
    const rooms = [...document.querySelectorAll(TARGETS)].filter(element => element.checkVisibility()).map(roomOf);
    const hasRoom = element => {
        const {left, right, top, bottom} = roomOf(element);
        return !rooms.some(room => (
            room.top < bottom && room.bottom > top && room.left < right && room.right > left && room.element !== element
        ));
    };

    const ask = (id, isAsked) => {
        const rule = axe._audit.rules.find(rule => rule.id === id);
        rule.everywhere ??= rule.matches;
        rule.matches = function (element, ...more) { return isAsked(element) && this.everywhere(element, ...more); };
    };
    ask("color-contrast", element => canHaveText(element) && !right.has(coloursOf(element)));
    ask("target-size", element => element.matches(TARGETS) && !hasRoom(element));
    const wasMeasured = node => node.any.some(check => check.data?.contrastRatio && check.data.bgColor);
    const report = (results, _options, done) => done({
        violations: results.filter(result => result.violations.length).map(({id, help, violations}) => (
            {id, help, nodes: violations.map(violation => violation.node.source)}
        )),
        right: results.filter(result => result.id === "color-contrast").flatMap(result => (
            result.passes.filter(wasMeasured).map(pass => read.get(pass.node.element)).filter(Boolean)
        )),
    });
    return axe.run(document, {runOnly, preload: {assets: ["media"]}, reporter: report});
}
