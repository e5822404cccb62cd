// The pages of nodes: the tree, pickers, and the grid of permissions.
import { grids } from "./permissions.js";
import { previews } from "./previews.js";
import { forms } from "./searches.js";
import { narrowing, selecting, setting } from "./selecting.js";
import { tree } from "./tree.js";

function start(root) {
  forms(root);
  grids(root);
  previews(root);
  root.querySelectorAll("[data-narrow]").forEach(narrowing);
  root.querySelectorAll(".to-set").forEach(setting);
}

start(document);
const begin = () => document.querySelectorAll("[data-tree]:not(.live)").forEach(tree);
begin();
document.querySelectorAll("[data-many]").forEach(selecting);
document.addEventListener("panel:merged", begin); // the first node may have arrived
document.addEventListener("panel:shown", (event) => start(event.detail));
