// SPDX-License-Identifier: Apache-2.0
"use strict";

// drawGraph draws boxes below one another, each behind those from which arrows lead to it,
// so that it is readable on a phone. An arrow to the next box goes straight down; others
// go by on the right. All texts become text nodes.
const drawGraph = (() => {
  const width = 480, pad = 12, lineHeight = 18, gap = 46, lane = 18;

  const make = (name, attributes, text) => {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    if (text !== undefined) e.textContent = text;
    return e;
  };

  // wrap breaks a text into lines of some characters, behind spaces where there are some.
  const wrap = (text, length) => {
    const lines = [];
    let rest = Array.from(text);
    while (rest.length > length) {
      const space = rest.lastIndexOf(" ", length - 1);
      const end = space > length / 2 ? space + 1 : length;
      lines.push(rest.slice(0, end).join(""));
      rest = rest.slice(end);
    }
    lines.push(rest.join(""));
    return lines;
  };

  const box = (node, top, boxWidth, kind) => {
    const letters = Math.floor((boxWidth - 2 * pad) / 8);
    const group = make("g", { class: `${node.decided ? "decided " + kind : ""} ${node.source ? "source" : ""}` });
    const rect = make("rect", { x: 1, y: top, width: boxWidth - 2, rx: 8 });
    group.append(rect, make("text", { x: pad, y: top + 20, class: "kind" }, node.kind.toUpperCase()));
    let y = top + 39;
    for (const [i, text] of [node.title, ...node.lines].entries()) {
      for (const line of wrap(text, letters)) {
        group.append(make("text", { x: pad, y, class: i === 0 ? "title" : "" }, line));
        y += lineHeight;
      }
      if (i === 0) y += 3;
    }
    rect.setAttribute("height", y - top - 5);
    return { group, bottom: y - 5 };
  };

  const head = (x, y, left) => make("path", { class: "head", d: left ? `M${x} ${y}l9 -5v10z` : `M${x} ${y}l-5 -9h10z` });

  return (graph, kind) => {
    const at = new Map(graph.nodes.map((n, i) => [n.id, i]));
    const edges = graph.edges.filter((e) => at.has(e.from) && at.has(e.to));
    const far = edges.filter((e) => at.get(e.to) !== at.get(e.from) + 1);
    const lanes = Math.min(far.length, 6);
    const boxWidth = width - (lanes ? lanes * lane + 14 : 0);
    const svg = make("svg", { class: "graph", role: "img" });
    const between = new Map();
    for (const e of edges) if (!far.includes(e)) between.set(e.to, [...(between.get(e.to) ?? []), e.text]);

    const tops = [], bottoms = [];
    let y = 1;
    for (const [i, node] of graph.nodes.entries()) {
      const ways = between.get(node.id);
      const lines = ways ? wrap(ways.join(" · "), Math.floor(boxWidth / 8) - 6) : [];
      if (i > 0) y += ways ? Math.max(gap, 26 + lines.length * 16) : 18;
      if (ways) {
        svg.append(make("path", { d: `M32 ${bottoms[i - 1]}V${y - 8}` }), head(32, y - 1, false));
        lines.forEach((line, n) => svg.append(make("text", { x: 46, y: y - 18 - (lines.length - 1 - n) * 16 + (lines.length === 1 ? -1 : 4), class: "way" }, line)));
      }
      const drawn = box(node, y, boxWidth, kind);
      svg.append(drawn.group);
      tops.push(y);
      y = drawn.bottom;
      bottoms.push(y);
    }
    far.forEach((e, n) => {
      const from = at.get(e.from), to = at.get(e.to);
      const y1 = (tops[from] + bottoms[from]) / 2 + 6, y2 = (tops[to] + bottoms[to]) / 2 - 6;
      const x = boxWidth + 10 + (n % 6) * lane;
      const path = make("path", { d: `M${boxWidth} ${y1}H${x}V${y2}H${boxWidth + 8}` });
      path.append(make("title", {}, e.text));
      svg.append(path, head(boxWidth, y2, true));
      svg.append(make("text", { x: x + 4, y: (y1 + y2) / 2, class: "way", transform: `rotate(90 ${x + 4} ${(y1 + y2) / 2})`, "text-anchor": "middle" }, Array.from(e.text).slice(0, 40).join("")));
    });
    svg.setAttribute("viewBox", `0 0 ${width} ${y + 2}`);
    const story = edges.map((e) => `${graph.nodes[at.get(e.from)].title}, ${e.text}, ${graph.nodes[at.get(e.to)].title}`).join("; ");
    svg.setAttribute("aria-label", `How it came to this: ${story}`);
    return svg;
  };
})();
