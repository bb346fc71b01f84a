/* SPDX-License-Identifier: Apache-2.0 */
/* Finds ops, functions and headings by their words; stands behind INDEX, which build.py writes. */
const root = document.currentScript.dataset.root;
const field = document.getElementById("search");
const list = document.getElementById("found");
const MOST = 12;

field.hidden = false;
field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (entry) => words.every((word) => (entry[0] + " " + entry[2]).toLowerCase().includes(word));
    /* Names that begin so come first; the order of the index otherwise. */
    const rank = (entry) => entry[0].toLowerCase().startsWith(words[0]) ? 0 : 1;
    const found = words.length ? INDEX.filter(has).sort((a, b) => rank(a) - rank(b)).slice(0, MOST) : [];
    list.replaceChildren(...found.map(([name, place, what]) => {
        const item = document.createElement("li");
        const link = item.appendChild(document.createElement("a"));
        link.href = root + place;
        link.textContent = name;
        item.appendChild(document.createElement("small")).textContent = what;
        return item;
    }));
    list.hidden = !words.length;
});
field.addEventListener("keydown", (event) => {
    const first = list.querySelector("a");
    if (event.key === "Enter" && first) location.href = first.href;
});
