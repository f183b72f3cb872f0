// Elements from plain values. Text only ever becomes text nodes and attributes, so
// that a key or value with markup is shown, never run.

const SVG = 'http://www.w3.org/2000/svg';
// Set as properties: as attributes they would only be the defaults.
const PROPERTIES = new Set(['value', 'checked', 'selected', 'disabled', 'open',
  'indeterminate', 'scrollTop']);

function setProp(node, name, value) {
  if (value === null || value === undefined) return;
  if (name === 'class') {
    node.setAttribute('class', Array.isArray(value)
      ? value.filter(Boolean).join(' ') : value);
  } else if (name === 'on') {
    for (const [event, listener] of Object.entries(value)) {
      if (listener) node.addEventListener(event, listener);
    }
  } else if (name === 'style') {
    for (const [property, text] of Object.entries(value)) {
      node.style.setProperty(property, text);
    }
  } else if (name === 'data') {
    for (const [key, text] of Object.entries(value)) node.dataset[key] = text;
  } else if (PROPERTIES.has(name)) {
    node[name] = value;
  } else if (name.startsWith('on') || name === 'srcdoc') {
    throw new Error(`no attribute of code: ${name}`);
  } else if (name === 'href' && !/^(#|blob:)/.test(value)) {
    throw new Error('links stay in the page');
  } else if (value !== false) {
    node.setAttribute(name, value === true ? '' : String(value));
  }
}

function build(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name !== 'value') setProp(node, name, value);
  }
  append(node, children);
  // After the children: a select has its options by now.
  if (props && 'value' in props) setProp(node, 'value', props.value);
  return node;
}

// Children: nodes, texts, numbers, arrays of them; null, undefined and false are
// left out.
export function append(node, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
  return node;
}

// h('button', {class: 'primary', on: {click: save}}, 'Save'). Props: class (text or
// list), on, style and data (objects), properties such as value, and attributes.
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

// The same for SVG.
export function svg(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

export function replace(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

// Changes the text only if it differs: a node that is written every second must not
// lose a selection or be announced again.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A button. `name` is for screen readers where the label is a symbol.
export function button(label, click, { kind = '', name, title, disabled, ...rest } = {}) {
  return h('button', {
    type: 'button', class: ['button', kind], 'aria-label': name, title,
    disabled, on: { click }, ...rest,
  }, label);
}

let fieldCount = 0;

// A label above a control, with an optional hint below it.
export function field(label, control, { hint, class: className } = {}) {
  fieldCount += 1;
  const id = `field-${fieldCount}`;
  control.id = id;
  const hintNode = hint && h('div', { class: 'hint', id: `${id}-hint` }, hint);
  if (hintNode) control.setAttribute('aria-describedby', hintNode.id);
  return h('div', { class: ['field', className] },
    h('label', { for: id }, label), control, hintNode);
}

// A table: columns of {label, class}, rows of lists of cells or of tr elements.
export function table(caption, columns, rows, { class: className, empty } = {}) {
  const body = rows.map((row) => (row instanceof Node ? row
    : h('tr', null, row.map((cell, i) => h('td', { class: columns[i].class }, cell)))));
  if (body.length === 0 && empty) {
    body.push(h('tr', null, h('td', { colspan: columns.length, class: 'empty' }, empty)));
  }
  return h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': `${caption}: table` },
    h('table', { class: className },
      h('caption', { class: 'visually-hidden' }, caption),
      h('thead', null, h('tr', null, columns.map((column) =>
        h('th', { scope: 'col', class: column.class }, column.label)))),
      h('tbody', null, body)));
}

// Says something to screen readers.
export function announce(text) {
  const live = document.getElementById('live');
  if (live) live.textContent = text;
}

const MAX_TOASTS = 4;

// A message that goes by itself; an error stays longer. kind: '', 'ok', 'bad'.
export function toast(text, kind = '') {
  const area = document.getElementById('toasts');
  if (!area) return;
  const node = h('div', { class: ['toast', kind], role: kind === 'bad' ? 'alert' : 'status' },
    h('span', null, text),
    button('×', () => node.remove(), { kind: 'quiet', name: 'Dismiss' }));
  while (area.childElementCount >= MAX_TOASTS) area.firstElementChild.remove();
  area.append(node);
  setTimeout(() => node.remove(), kind === 'bad' ? 12_000 : 5_000);
}

// A modal dialog: `body` is a node or text. Resolves with the value of the button
// that was pressed, or null. `submit` is called before it closes with the button's
// value; if it throws, its message is shown and the dialog stays.
export function dialog({ title, body, buttons, submit, wide }) {
  return new Promise((resolve) => {
    const error = h('p', { class: 'error', role: 'alert', hidden: true });
    let result = null;
    const node = h('dialog', {
      class: ['dialog', wide && 'wide'], 'aria-label': title,
      on: { close: () => { node.remove(); resolve(result); } },
    });
    const press = async (value) => {
      if (value !== null && submit) {
        const all = node.querySelectorAll('.dialog-buttons button');
        all.forEach((each) => { each.disabled = true; });
        try {
          await submit(value);
        } catch (failure) {
          error.hidden = false;
          error.textContent = failure.message;
          return;
        } finally {
          all.forEach((each) => { each.disabled = false; });
        }
      }
      result = value;
      node.close();
    };
    append(node, h('form', {
      method: 'dialog',
      on: {
        submit: (event) => {
          event.preventDefault();
          const main = buttons.find((each) => each.value !== null);
          press(main ? main.value : null);
        },
      },
    },
    h('h2', null, title), h('div', { class: 'dialog-body' }, body), error,
    h('div', { class: 'dialog-buttons' }, buttons.map(({ label, value, kind }) =>
      button(label, () => press(value), { kind })))));
    document.body.append(node);
    node.showModal();
  });
}

// Asks before something is changed. Resolves with whether to do it.
export async function confirm({ title, body, action, danger = false, submit, wide }) {
  const answer = await dialog({
    title, body, submit, wide,
    buttons: [{ label: action, value: true, kind: danger ? 'danger' : 'primary' },
      { label: 'Cancel', value: null }],
  });
  return answer === true;
}
