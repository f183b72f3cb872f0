// Makes a namespace: its name and the options that matter most; the others are edited in
// its view.
import { dialog, field, h, toast } from '../dom.js';
import { parseDuration, protoDuration } from '../format.js';

const DURABILITIES = [['', 'In memory (lost at a restart)'], ['DURABILITY_ASYNC', 'Async (survives a crash)'],
  ['DURABILITY_SYNC', 'Sync (survives a loss of power)'], ['DURABILITY_REPLICATED', 'Replicated (in a cluster)']];

export async function createNamespace(api) {
  const name = h('input', { required: true, maxlength: 63, autocomplete: 'off', spellcheck: 'false' });
  const ttl = h('input', { value: '30s' });
  const buckets = h('input', { type: 'number', min: 2, max: 100000, value: 101 });
  const durability = h('select', null, DURABILITIES.map(([value, label]) => h('option', { value }, label)));
  const sliding = h('input', { type: 'checkbox' });
  const done = await dialog({
    title: 'New namespace',
    body: [field('Name', name, { hint: 'Lower-case letters, digits, - and .' }),
      h('div', { class: 'form-grid' },
        field('Time to live', ttl, { hint: 'As 30s, 15m, 12h, 7d' }),
        field('Buckets', buckets, { hint: 'An entry may live ttl / (buckets - 1) longer' }),
        field('Durability', durability, { hint: 'Whether it is in memory is fixed from now on' })),
      h('label', { class: 'check' }, sliding, 'A Get renews the time to live (sliding)')],
    buttons: [{ label: 'Make it', value: true, kind: 'primary' }, { label: 'Cancel', value: null }],
    submit: async () => {
      const length = parseDuration(ttl.value);
      if (!(length > 0)) throw new Error('The time to live is no duration: write it as 30s, 15m, 12h or 7d.');
      const options = { ttl: protoDuration(length), numBuckets: Number(buckets.value), sliding: sliding.checked };
      if (durability.value) options.durability = durability.value;
      const answer = await api.call('NamespaceService/CreateNamespace', { name: name.value.trim(), options });
      for (const warning of answer.warnings ?? []) toast(warning);
    },
  });
  if (!done) return;
  toast(`${name.value.trim()} is made.`, 'ok');
  document.dispatchEvent(new Event('namespaceschange'));
}
