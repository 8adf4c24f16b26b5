"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const DAY = 86400000;
  const EDGE_STYLES = {
    semantic: { color: "#8a8a8a", line: "solid", words: "semantic" },
    causal: { color: "#c0392b", line: "solid", words: "causal" },
    temporal: { color: "#2e6fb0", line: "solid", words: "temporal" },
    entity: { color: "#2f855a", line: "solid", words: "entity" },
    co_occurrence: { color: "#b5b5b5", line: "dotted", words: "co-occurrence" },
  };
  const byId = (id) => document.getElementById(id);

  // Inserts data as text, never as markup.
  function make(tag, properties = {}, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }
  const isolated = (text) => make("bdi", {}, text);
  const day = (time) => new Date(time).toISOString().slice(0, 10);
  const count = (number, one, many = one + "s") => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

  // View state

  const state = { mode: data.moment === null ? "now" : "day", at: data.moment ?? data.drawnAt, types: new Set(), edgeTypes: new Set(), kind: null, chosen: null };
  const isOver = (link) => link.to !== null && link.to <= data.drawnAt;
  function holds(link) {
    if (state.mode === "always") return true;
    if (state.mode === "now") return !isOver(link);
    return link.from <= state.at && (link.to === null || state.at < link.to);
  }
  const linksOf = data.nodes.map(() => []);
  data.links.forEach((link, number) => {
    linksOf[link.source].push(number);
    linksOf[link.target].push(number);
  });

  // Layout. d3-force is deterministic: the same picture always looks the same.

  function settle(nodes, forces) {
    const simulation = d3.forceSimulation(nodes).stop();
    Object.entries(forces).forEach(([name, force]) => simulation.force(name, force));
    simulation.tick(300);
    return nodes;
  }
  // Places communities as circles, attracted by the facts between them.
  function centres() {
    const circles = data.kinds.map((kind) => ({ radius: 34 * Math.sqrt(kind.size) + 30 }));
    const between = new Map();
    data.links.forEach((link) => {
      const ends = [data.nodes[link.source].kind, data.nodes[link.target].kind].sort((a, b) => a - b);
      if (ends[0] !== ends[1]) between.set(ends.join(), (between.get(ends.join()) ?? 0) + 1);
    });
    const links = [...between].map(([ends, facts]) => ({ source: Number(ends.split(",")[0]), target: Number(ends.split(",")[1]), facts }));
    return settle(circles, {
      links: d3.forceLink(links).distance((link) => link.source.radius + link.target.radius).strength((link) => Math.min(0.8, 0.2 * link.facts)),
      x: d3.forceX().strength(0.05), y: d3.forceY().strength(0.08), apart: d3.forceCollide((circle) => circle.radius).iterations(4),
    });
  }
  const sizeOf = (number) => 16 + 7 * Math.sqrt(Math.min(linksOf[number].length, 30));
  function places() {
    const at = data.byCommunity ? centres() : data.kinds.map(() => ({ x: 0, y: 0 }));
    const pull = data.byCommunity ? 0.12 : 0.05;
    const inside = (link) => !data.byCommunity || data.nodes[link.source.index].kind === data.nodes[link.target.index].kind;
    const nodes = data.nodes.map((node, number) => {
      const angle = number * 2.4, radius = 10 * Math.sqrt(number + 1); // a spiral, so that start positions are distinct
      return { x: at[node.kind].x + radius * Math.cos(angle), y: at[node.kind].y + radius * Math.sin(angle) };
    });
    const links = data.links.map((link) => ({ source: link.source, target: link.target }));
    const length = data.nodes.length < 120 ? 130 : 90;
    return settle(nodes, {
      links: d3.forceLink(links).distance(length).strength((link) => (inside(link) ? 0.5 / Math.min(linksOf[link.source.index].length, linksOf[link.target.index].length) : 0.01)),
      charge: d3.forceManyBody().strength(-260).distanceMax(400),
      x: d3.forceX((_, number) => at[data.nodes[number].kind].x).strength(pull), y: d3.forceY((_, number) => at[data.nodes[number].kind].y).strength(pull),
      apart: d3.forceCollide((_, number) => sizeOf(number) / 2 + 16).iterations(2),
    });
  }

  // The graph

  function elements() {
    const at = places();
    const nodes = data.nodes.map((node, number) => ({
      group: "nodes",
      data: {
        id: `n${number}`, number, label: node.name, color: data.kinds[node.kind].color,
        size: sizeOf(number),
      },
      classes: node.seed ? "seed" : "",
      position: { x: at[number].x, y: at[number].y },
    }));
    const edges = data.links.map((link, number) => {
      const look = EDGE_STYLES[link.type];
      return {
        group: "edges",
        data: { id: `e${number}`, number, source: `n${link.source}`, target: `n${link.target}`, label: link.relation, color: look.color, line: link.stated ? look.line : "dotted" },
        classes: isOver(link) ? "over" : "",
      };
    });
    return [...nodes, ...edges];
  }
  const style = [
    { selector: "node", style: {
      "background-color": "data(color)", width: "data(size)", height: "data(size)", "border-width": 1, "border-color": "#555",
      label: "data(label)", "font-size": 12, "text-valign": "bottom", "text-margin-y": 3, "text-wrap": "wrap", "text-max-width": 110,
      "text-outline-color": "#fff", "text-outline-width": 2, color: "#222", "min-zoomed-font-size": 7,
    } },
    { selector: "node.seed", style: { "border-width": 3, "border-color": "#111", "font-weight": "bold", "font-size": 14, "min-zoomed-font-size": 0 } },
    { selector: "edge", style: {
      width: 1.4, "line-color": "data(color)", "line-style": "data(line)", "target-arrow-color": "data(color)", "target-arrow-shape": "triangle",
      "arrow-scale": 0.8, "curve-style": "bezier", label: "data(label)", "font-size": 9, color: "#555", "text-rotation": "autorotate",
      "text-outline-color": "#fff", "text-outline-width": 2, "min-zoomed-font-size": 8, "text-max-width": 120, "text-wrap": "ellipsis",
    } },
    { selector: "edge.over", style: { "line-style": "dashed", opacity: 0.6 } },
    { selector: ".faded", style: { opacity: 0.2, "text-opacity": 0 } },
    { selector: ".near", style: { "min-zoomed-font-size": 0, "z-index": 10 } },
    { selector: "node:selected", style: { "border-width": 4, "border-color": "#d6336c" } },
    { selector: "edge:selected", style: { width: 3.5, "line-color": "#d6336c", "target-arrow-color": "#d6336c", opacity: 1 } },
    { selector: ".hidden", style: { display: "none" } },
  ];
  const graph = cytoscape({ container: byId("graph"), elements: elements(), style, layout: { name: "preset" }, minZoom: 0.05, maxZoom: 4 });
  function fit() {
    graph.fit(graph.elements(":visible"), 40);
    if (graph.zoom() > 1.4) {
      graph.zoom(1.4);
      graph.center(graph.elements(":visible"));
    }
  }

  // Filters

  function refresh() {
    const shown = data.links.map((link) => holds(link) && state.edgeTypes.has(link.type) && state.types.has(data.nodes[link.source].type) && state.types.has(data.nodes[link.target].type));
    // Hides an entity if all of its facts are hidden; an entity without facts stays visible.
    const visible = data.nodes.map((node, number) => state.types.has(node.type) && (node.seed || linksOf[number].length === 0 || linksOf[number].some((link) => shown[link])));
    graph.batch(() => {
      graph.nodes().forEach((node) => node.toggleClass("hidden", !visible[node.data("number")]));
      graph.edges().forEach((edge) => edge.toggleClass("hidden", !shown[edge.data("number")]));
    });
    const nodes = visible.filter(Boolean).length, links = shown.filter(Boolean).length;
    byId("counts").textContent = `${count(nodes, "entity", "entities")}, ${count(links, "fact")} shown`;
    emphasise();
  }
  function emphasise() {
    let bright = null;
    if (state.kind !== null) bright = graph.nodes().filter((node) => data.nodes[node.data("number")].kind === state.kind);
    if (bright) bright = bright.union(bright.edgesWith(bright));
    const chosen = state.chosen;
    if (chosen) bright = chosen.isNode() ? chosen.closedNeighborhood(":visible") : chosen.union(chosen.connectedNodes());
    graph.batch(() => {
      graph.elements().removeClass("faded near");
      if (!bright) return;
      graph.elements().not(bright).addClass("faded");
      bright.addClass("near");
    });
  }
  function showTime() {
    byId("now").setAttribute("aria-pressed", state.mode === "now");
    byId("always").setAttribute("aria-pressed", state.mode === "always");
    byId("date").value = day(state.at);
    byId("slider").value = Math.floor(state.at / DAY);
    refresh();
  }
  function setUpTime() {
    const times = data.links.flatMap((link) => (link.to === null ? [link.from] : [link.from, link.to]));
    const first = times.reduce((a, b) => Math.min(a, b), state.at), last = times.reduce((a, b) => Math.max(a, b), data.drawnAt);
    const slider = byId("slider");
    slider.min = Math.floor(first / DAY);
    slider.max = Math.ceil(last / DAY);
    byId("first").textContent = day(first);
    byId("last").textContent = day(last);
    // A day means its end, so that facts that began on it are included.
    const choose = (number) => Object.assign(state, { mode: "day", at: (number + 1) * DAY - 1 });
    slider.addEventListener("input", () => { choose(Number(slider.value)); showTime(); });
    byId("date").addEventListener("change", (event) => { if (event.target.value) { choose(Date.parse(event.target.value) / DAY); showTime(); } });
    byId("now").addEventListener("click", () => { Object.assign(state, { mode: "now", at: data.drawnAt }); showTime(); });
    byId("always").addEventListener("click", () => { state.mode = "always"; showTime(); });
  }
  function setUpChoices(box, values, chosen, mark) {
    const sizes = new Map();
    values.forEach((value) => sizes.set(value, (sizes.get(value) ?? 0) + 1));
    [...sizes].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).forEach(([value, size]) => {
      chosen.add(value);
      const input = make("input", { type: "checkbox", checked: true, value });
      input.addEventListener("change", () => { if (input.checked) chosen.add(value); else chosen.delete(value); refresh(); });
      byId(box).append(make("label", { className: "choice" }, input, ...mark(value), make("small", {}, size.toLocaleString("en"))));
    });
  }
  function setUpKinds() {
    byId("kinds-title").textContent = data.byCommunity ? "Communities" : "Colors";
    data.kinds.forEach((kind, number) => {
      const swatch = make("span", { className: "swatch" });
      swatch.style.background = kind.color;
      const button = make("button", { type: "button", title: kind.summary }, swatch, isolated(kind.name), make("small", {}, kind.size.toLocaleString("en")));
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => {
        state.kind = state.kind === number ? null : number;
        byId("kinds").querySelectorAll("button").forEach((other) => other.setAttribute("aria-pressed", other === button && state.kind !== null));
        choose(null);
        if (data.byCommunity && state.kind !== null) showKind(kind);
      });
      byId("kinds").append(make("li", {}, button));
    });
  }

  // Details panel

  function article(link) {
    const quotes = link.sources.map((number) => {
      const source = data.sources[number];
      const who = source.who ? [isolated(source.who), ", "] : [];
      if (!source.text) return make("p", { className: "meta" }, `told as a ready-made fact, ${day(source.at)}`);
      return make("blockquote", {}, isolated(source.text), make("footer", {}, ...who, day(source.at)));
    });
    return make("article", { className: isOver(link) ? "ended" : "" },
      make("p", {}, isolated(link.fact || `${data.nodes[link.source].name} ${link.relation} ${data.nodes[link.target].name}`)),
      make("p", { className: "meta" }, isolated(link.relation), `, ${EDGE_STYLES[link.type].words}; ${link.when}; confidence ${link.confidence}`),
      ...quotes);
  }
  function panel(...children) {
    const close = make("button", { type: "button", className: "close" }, "Close");
    close.addEventListener("click", () => choose(null));
    byId("details").replaceChildren(close, ...children);
    byId("details").hidden = false;
  }
  function showNode(number) {
    const node = data.nodes[number];
    const community = data.byCommunity ? [", ", isolated(data.kinds[node.kind].name)] : [];
    const newest = (a, b) => data.links[b].from - data.links[a].from;
    const now = linksOf[number].filter((link) => holds(data.links[link])).sort(newest);
    const other = linksOf[number].filter((link) => !holds(data.links[link])).sort(newest);
    const list = (title, numbers) => (numbers.length ? [make("h3", {}, title), ...numbers.map((link) => article(data.links[link]))] : []);
    panel(make("h2", {}, isolated(node.name)), make("p", { className: "meta" }, isolated(node.type), ...community),
      ...(node.summary ? [make("p", {}, isolated(node.summary))] : []),
      ...list(count(now.length, "fact"), now), ...list("At other times", other),
      ...(linksOf[number].length ? [] : [make("p", { className: "meta" }, "No fact about it is in this picture.")]));
  }
  function showLink(number) {
    const link = data.links[number];
    const end = (place) => {
      const button = make("button", { type: "button", className: "link" }, isolated(data.nodes[place].name));
      button.addEventListener("click", () => choose(graph.getElementById(`n${place}`)));
      return button;
    };
    panel(make("h2", {}, isolated(link.relation)), article(link), make("h3", {}, "Between"), end(link.source), end(link.target));
  }
  function showKind(kind) {
    panel(make("h2", {}, isolated(kind.name)), make("p", { className: "meta" }, count(kind.size, "entity", "entities")), ...(kind.summary ? [make("p", {}, isolated(kind.summary))] : []));
  }
  function choose(element) {
    graph.elements().unselect();
    state.chosen = element;
    byId("details").hidden = true;
    if (element) {
      element.select();
      if (element.isNode()) showNode(element.data("number")); else showLink(element.data("number"));
    }
    graph.resize();
    if (element) bringIntoView(element.isNode() ? element : element.union(element.connectedNodes()));
    emphasise();
  }
  // The panel reduces the graph area: keep the selected element visible.
  function bringIntoView(elements) {
    const box = elements.renderedBoundingBox();
    if (box.x1 >= 0 && box.y1 >= 0 && box.x2 <= graph.width() && box.y2 <= graph.height()) return;
    if (box.w > graph.width() || box.h > graph.height()) graph.fit(elements, 60);
    else graph.center(elements);
  }

  // Search

  const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  function find() {
    const wanted = folded(byId("search").value.trim());
    byId("hits").replaceChildren();
    if (!wanted) return;
    const places = data.nodes.map((_, number) => number);
    const named = places.filter((number) => folded(data.nodes[number].name).includes(wanted));
    const told = places.filter((number) => !named.includes(number) && linksOf[number].some((link) => folded(data.links[link].fact).includes(wanted)));
    [...named, ...told].slice(0, 20).forEach((number) => {
      const button = make("button", { type: "button" }, isolated(data.nodes[number].name), make("small", {}, data.nodes[number].type));
      button.addEventListener("click", () => {
        const node = graph.getElementById(`n${number}`);
        if (node.hasClass("hidden") && state.types.has(data.nodes[number].type)) {
          state.mode = "always"; // the match is visible only at another time
          showTime();
        }
        choose(node);
        graph.animate({ center: { eles: node }, zoom: Math.max(graph.zoom(), 1), duration: 200 });
      });
      byId("hits").append(make("li", {}, button));
    });
    if (!byId("hits").children.length) byId("hits").append(make("li", {}, "nothing found"));
  }

  byId("title").firstElementChild.textContent = data.title;
  setUpTime();
  setUpKinds();
  setUpChoices("types", data.nodes.map((node) => node.type), state.types, (value) => [isolated(value)]);
  setUpChoices("edge-types", data.links.map((link) => link.type), state.edgeTypes, (value) => {
    const dash = make("span", { className: "dash" });
    dash.style.borderTopColor = EDGE_STYLES[value].color;
    dash.style.borderTopStyle = EDGE_STYLES[value].line;
    return [dash, EDGE_STYLES[value].words];
  });
  byId("search").addEventListener("input", find);
  byId("search").addEventListener("keydown", (event) => { if (event.key === "Enter") byId("hits").querySelector("button")?.click(); });
  byId("fit").addEventListener("click", fit);
  byId("image").addEventListener("click", () => {
    const link = make("a", { download: "graphmem.png", href: URL.createObjectURL(graph.png({ output: "blob", scale: 2, full: true, bg: "#fff" })) });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  graph.on("tap", (event) => choose(event.target === graph ? null : event.target));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") choose(null); });
  showTime();
  fit();
  window.graph = graph;
})();
