// SPDX-License-Identifier: Apache-2.0
// The controls of a report: they change the range and the columns of the figures that Bokeh drew.
"use strict";
const runs = JSON.parse(document.getElementById("runs").textContent);
const model = (name) => Bokeh.documents.map((each) => each.get_model_by_name(name)).find((each) => each);
const rangeOf = (run) => model(`range-${run}`);
const stepsOf = (run) => model(`steps-${run}`);

function zoom(run, start, end) {
  const range = rangeOf(run);
  range.setv({ start: Math.max(start, range.bounds[0]), end: Math.min(end, range.bounds[1]) });
}

function whole(run) {
  const times = stepsOf(run).data.time_s;
  zoom(run, times[0], times[times.length - 1]);
}

function jump(run, forward) {
  const range = rangeOf(run);
  const middle = (range.start + range.end) / 2;
  const marks = runs[run].marks.filter((at) => (forward ? at > middle + 0.01 : at < middle - 0.01));
  if (marks.length) {
    const at = forward ? marks[0] : marks[marks.length - 1];
    zoom(run, at - 1, at + 1);
  }
}

function choose(run, joint) {
  const source = stepsOf(run);
  const chosen = { ...source.data };
  for (const name of ["planned", "commanded", "measured"]) chosen[name] = source.data[`${name}_${joint}`];
  source.data = chosen;
  model(`unit-${run}`).axis_label = runs[run].units[joint];
}

function csvOf(run) {
  const data = stepsOf(run).data;
  const columns = runs[run].columns;
  const name = (column) => column.replace(/_(\d+)$/, (_, joint) => `.${runs[run].names[joint]}`);
  const cell = (value) => (typeof value === "number" && !Number.isFinite(value) ? "" : String(value));
  const lines = [columns.map(name).join(",")];
  for (let row = 0; row < data.time_s.length; row++) {
    lines.push(columns.map((column) => cell(data[column][row])).join(","));
  }
  return lines.join("\n") + "\n";
}

function download(run) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csvOf(run)], { type: "text/csv" }));
  link.download = `${runs[run].name.replace(/[^\w.-]+/g, "_")}.csv`;
  link.click();
}

function picture(run, time) {
  const newest = {};
  for (const [at, camera, jpeg] of runs[run].frames) {
    if (at <= time || !(camera in newest)) newest[camera] = jpeg;
  }
  for (const [camera, jpeg] of Object.entries(newest)) {
    document.getElementById(`frame-${run}-${camera}`).src = `data:image/jpeg;base64,${jpeg}`;
  }
}

window.pictureAt = picture; // called by the figures as the cursor moves

const on = (event, selector, act) =>
  document.querySelectorAll(selector).forEach((each) => each.addEventListener(event, () => act(each)));

on("click", ".before", (each) => jump(each.dataset.run, false));
on("click", ".after", (each) => jump(each.dataset.run, true));
on("click", ".whole", (each) => whole(each.dataset.run));
on("click", ".csv", (each) => download(each.dataset.run));
on("change", ".joint", (each) => choose(each.dataset.run, each.value));
on("click", "tr.episode", (each) => zoom(each.dataset.run, Number(each.dataset.start), Number(each.dataset.end)));
on("change", ".show", (each) => {
  document.getElementById(`run-${each.dataset.run}`).hidden = !each.checked;
});

function ready() {
  if (typeof Bokeh === "undefined" || !runs.every((_, run) => rangeOf(run))) {
    setTimeout(ready, 50);
    return;
  }
  runs.forEach((run, number) => picture(number, 0));
  document.querySelectorAll(".show").forEach((each) => {
    document.getElementById(`run-${each.dataset.run}`).hidden = !each.checked;
  });
  document.body.dataset.ready = "yes";
}
ready();
