// SPDX-License-Identifier: BSD-3-Clause
// Saves each plot of the page as SVG, PNG and CSV. It asks for nothing outside the page, and has no "less than" and no
// ampersand, so that the page stays well-formed XML too.
"use strict";
const PNG_SCALE = 3;

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// The plot alone, in the colours of the light theme, on white.
function svgText(figure) {
  const copy = figure.querySelector("svg").cloneNode(true);
  copy.setAttribute("style", "background: #ffffff");
  return new XMLSerializer().serializeToString(copy).replace(/var\(--\w+, (#\w+)\)/g, "$1");
}

function csvText(figure) {
  const quoted = (cell) => {
    const text = cell.dataset.value === undefined ? cell.textContent : cell.dataset.value;
    return /[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  };
  const rows = Array.from(figure.querySelectorAll("details tr"));
  return rows.map((row) => Array.from(row.children, quoted).join(",") + "\r\n").join("");
}

// Calls back with the PNG.
function makePng(figure, done) {
  const image = new Image(), box = figure.querySelector("svg").viewBox.baseVal;
  image.onload = () => {
    const canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
    canvas.width = PNG_SCALE * box.width;
    canvas.height = PNG_SCALE * box.height;
    pen.fillStyle = "#ffffff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(done, "image/png");
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(figure));
}

const FORMS = {
  SVG: (figure, name) => save(new Blob([svgText(figure)], {type: "image/svg+xml"}), name + ".svg"),
  PNG: (figure, name) => makePng(figure, (blob) => save(blob, name + ".png")),
  CSV: (figure, name) => save(new Blob([csvText(figure)], {type: "text/csv"}), name + ".csv"),
};

document.querySelectorAll("figure").forEach((figure) => {
  const line = document.createElement("p");
  line.className = "save";
  line.append("save as");
  Object.keys(FORMS).forEach((form) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = form;
    button.onclick = () => FORMS[form](figure, figure.dataset.name);
    line.append(button);
  });
  figure.append(line);
});
