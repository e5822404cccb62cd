// The pages of nodes: the tree, pickers, and the grid of permissions.
import { grids } from "./permissions.js";
import { forms } from "./searches.js";
import { tree } from "./tree.js";

function start(root) {
  forms(root);
  grids(root);
}

start(document);
const list = document.querySelector("[data-tree]");
if (list) tree(list);
document.addEventListener("panel:shown", (event) => start(event.detail));
