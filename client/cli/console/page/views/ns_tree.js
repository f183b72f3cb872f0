// The tree of prefixes of a namespace, from a sample: a scan's order is by a hash of the
// key, so that its beginning is a fair sample of the whole.
import { ApiError, isAbort } from '../api.js';
import { button, h, replace, setText } from '../dom.js';
import { bytes, count, num, plural, shortCount, textToBase64, visible } from '../format.js';
import { PrefixTree, scanPages } from '../scan.js';

const SMALL = { entries: 4_000, bytes: 2 << 20 };
const LARGE = { entries: 100_000, bytes: 48 << 20 };
const CHILDREN = 25;

export function mountTree(context, choose) {
  const { name, api, signal } = context;
  let after = '';
  let loading = null;
  const list = h('div', { class: 'tree' });
  const note = h('p', { class: 'hint', role: 'status' });
  const larger = button('Larger sample', () => sample(LARGE));
  const up = button('All prefixes', () => {
    after = '';
    choose('');
    sample(SMALL);
  }, { hidden: true });
  const element = h('div', { class: 'browse-tree' }, h('h3', null, 'Prefixes'), list, note,
    h('div', { class: 'row' }, larger, up));

  async function sample(limit = SMALL) {
    loading?.abort();
    const own = new AbortController();
    loading = own;
    larger.disabled = true;
    const tree = new PrefixTree();
    const drawAll = (ended) => draw(tree, ended);
    try {
      const ended = await scanPages(api, { namespace: name, keyPrefix: textToBase64(after) }, {
        signal: AbortSignal.any([signal, own.signal]),
        take: (page) => {
          for (const entry of page.entries ?? []) tree.add(entry, after);
          setText(note, `${count(tree.root.entries)} entries read …`);
          return tree.root.entries < limit.entries && tree.root.bytes < limit.bytes;
        },
      });
      drawAll(ended);
    } catch (error) {
      if (isAbort(error)) return;
      if (!(error instanceof ApiError)) throw error;
      setText(note, error.message);
    } finally {
      larger.disabled = false;
    }
  }

  function draw(tree, ended) {
    const { statistics } = context.namespace;
    // Below a prefix the number of all is not known.
    const factor = ended || after !== '' || tree.root.entries === 0 ? 1
      : Math.max(1, num(statistics.entries) / tree.root.entries);
    const about = factor > 1 ? '≈ ' : '';
    const items = (node) => {
      const children = [...node.children.values()].sort((a, b) => b.entries - a.entries);
      const direct = node.entries - children.reduce((sum, child) => sum + child.entries, 0);
      return h('ul', null, children.slice(0, CHILDREN).map((child) => item(child, children.length === 1)),
        children.length > CHILDREN && h('li', { class: 'muted' }, `${count(children.length - CHILDREN)} more prefixes`),
        children.length > 0 && direct > 0 && h('li', { class: 'muted tree-row' }, h('span', { class: 'tree-toggle' }), h('span', null, 'others'),
          h('span', { class: 'number' }, about + shortCount(direct * factor))));
    };
    const item = (node, alone) => {
      const label = visible(node.label);
      const inner = node.children.size > 0 && h('div', { hidden: true });
      const toggle = inner && h('button', {
        type: 'button', class: 'tree-toggle', 'aria-expanded': 'false', 'aria-label': `What is below ${label}`,
        on: { click: () => {
          // Drawn when it is opened: a tree may have thousands of nodes.
          if (inner.childElementCount === 0) inner.append(items(node));
          inner.hidden = !inner.hidden;
          toggle.setAttribute('aria-expanded', String(!inner.hidden));
        } },
      });
      // The only prefix says nothing by itself.
      if (alone && toggle) toggle.click();
      return h('li', null, h('div', { class: 'tree-row' }, toggle || h('span', { class: 'tree-toggle' }),
        h('button', { type: 'button', class: 'link mono', title: `Entries that begin with ${visible(node.prefix)}`,
          on: { click: () => choose(node.prefix) } }, label),
        h('span', { class: 'number muted' }, `${about}${shortCount(node.entries * factor)} · ${bytes(node.bytes * factor)}`)),
      inner);
    };
    replace(list, tree.root.children.size > 0 ? items(tree.root)
      : h('p', { class: 'muted' }, tree.root.entries === 0 ? 'No entries.' : 'Keys have no prefixes that end in : / . | or #.'));
    setText(note, ended ? `All were read: ${plural(tree.root.entries, 'entry', 'entries')}.`
      : `From a sample of ${plural(tree.root.entries, 'entry', 'entries')}.`);
    larger.hidden = ended;
    up.hidden = after === '';
  }

  sample(SMALL);
  return { element, sample: () => sample(SMALL) };
}
