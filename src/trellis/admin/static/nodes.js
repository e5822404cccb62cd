// What makes the pages of nodes quicker to use: the tree, the search for a node, the grid of permissions.
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
