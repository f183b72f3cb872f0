// The options of a namespace: read, and changed after the page has said what that does.
import { button, confirm, field, h, replace, toast } from '../dom.js';
import { bytes, durationInput, enumText, seconds } from '../format.js';
import { OPTIONS, effectsOf, optionText, parseOption } from '../option_effects.js';

const GROUPS = ['Life', 'Limits', 'Events', 'Safety'];

export function mountOptions(context) {
  const { can } = context;
  const body = h('div');
  const edit = button('Edit', () => showForm());
  const element = h('section', { class: 'card', 'aria-label': 'Options' },
    h('div', { class: 'card-head' }, h('h2', null, 'Options'), can('ADMIN') && edit), body);
  let editing = false;
  let drawn = '';

  function showFacts() {
    editing = false;
    edit.hidden = false;
    const { options } = context.namespace;
    drawn = JSON.stringify(options);
    replace(body, h('div', { class: 'options' }, GROUPS.map((group) => h('div', null, h('h3', null, group),
      h('dl', { class: 'facts-list' }, OPTIONS.filter((option) => option.group === group).map((option) =>
        [h('dt', null, option.label), h('dd', { class: 'number' }, optionText(option, options))]),
      group === 'Safety' && [h('dt', null, 'Shards'), h('dd', { class: 'number' }, options.numShards),
        h('dt', null, 'Partitions'), h('dd', { class: 'number' }, options.numPartitions)])))));
  }

  function control(option, options) {
    const value = options[option.name];
    if (option.kind === 'bool') return h('select', { value: value ? 'yes' : 'no' }, h('option', { value: 'no' }, 'no'), h('option', { value: 'yes' }, 'yes'));
    if (option.kind === 'enum') {
      const values = option.fixed?.(options) ? [value] : option.values;
      return h('select', { value, disabled: option.fixed?.(options) ?? false }, values.map((each) =>
        h('option', { value: each }, enumText(each, option.prefix))));
    }
    return h('input', { value: inputText(option, value), spellcheck: 'false', autocomplete: 'off' });
  }

  function inputText(option, value) {
    if (option.kind === 'duration') return durationInput(seconds(value));
    if (option.kind === 'bytes') {
      const text = bytes(value).replace(' ', '');
      // Only where this is exact.
      return parseOption(option, text) === String(value) ? text : String(value);
    }
    return String(value ?? '');
  }

  function showForm() {
    editing = true;
    edit.hidden = true;
    const { options } = context.namespace;
    const controls = new Map(OPTIONS.map((option) => [option, control(option, options)]));
    const error = h('p', { class: 'error', role: 'alert', hidden: true });
    const hint = (option) => (option.fixed?.(options) ? 'Fixed when it was made'
      : [option.hint, option.zero && `0: ${option.zero}`].filter(Boolean).join('. ') || undefined);
    replace(body, h('form', { class: 'stack', on: { submit: (event) => {
      event.preventDefault();
      error.hidden = true;
      try {
        review(takeChanges(controls, options));
      } catch (failure) {
        error.hidden = false;
        error.textContent = failure.message;
      }
    } } }, GROUPS.map((group) => h('fieldset', null, h('legend', null, group), h('div', { class: 'form-grid' },
      OPTIONS.filter((option) => option.group === group).map((option) =>
        field(option.label, controls.get(option), { hint: hint(option) }))))), error,
    h('div', { class: 'row' }, h('button', { class: 'button primary', type: 'submit' }, 'Review the change'),
      button('Cancel', showFacts))));
  }

  function takeChanges(controls, options) {
    const changed = {};
    for (const [option, node] of controls) {
      const before = options[option.name];
      if (option.kind === 'bool') {
        if ((node.value === 'yes') !== Boolean(before)) changed[option.name] = node.value === 'yes';
      } else if (node.value !== (option.kind === 'enum' ? before : inputText(option, before))) {
        const value = parseOption(option, node.value);
        const isSame = option.kind === 'duration' ? seconds(value) === seconds(before) : value === String(before ?? '');
        if (!isSame) changed[option.name] = value;
      }
    }
    if (Object.keys(changed).length === 0) throw new Error('Nothing is changed.');
    return changed;
  }

  async function review(changed) {
    const { namespace, name, api, sampler } = context;
    const rates = sampler.namespaces.get(name)?.rates;
    const effects = effectsOf(namespace, rates, changed);
    const sure = await confirm({
      title: `Change ${name}?`, action: 'Change it', wide: true,
      body: h('div', { class: 'stack' }, effects.map(({ label, from, to, texts }) => h('div', { class: 'effect' },
        h('h3', null, label, ': ', h('span', { class: 'muted' }, from), ' → ', h('strong', null, to)),
        h('ul', null, texts.map((text) => h('li', { class: text.startsWith('!') ? 'warning' : '' }, text.replace(/^!/, ''))))))),
      submit: async () => {
        const { warnings = [] } = await api.call('NamespaceService/UpdateNamespace', {
          namespace: { name, options: changed },
          updateMask: Object.keys(changed).map((each) => `options.${each}`).join(','),
        });
        warnings.forEach((warning) => toast(warning));
      },
    });
    if (!sure) return;
    toast('The options are changed.', 'ok');
    editing = false;
    await context.describe();
  }

  context.listeners.push((namespace) => {
    if (!editing && JSON.stringify(namespace.options) !== drawn) showFacts();
  });
  showFacts();
  return { element };
}

