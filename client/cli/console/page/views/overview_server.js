// The server's limits, its journal, and its cluster where there is one.
import { h, replace, table } from '../dom.js';
import { bytes, count, duration, enumText, num, plural, rate, seconds, shortCount, time } from '../format.js';

export function mountServer(sampler, signal) {
  const limits = h('section', { class: 'card', 'aria-label': 'Limits' });
  const journal = h('section', { class: 'card', 'aria-label': 'Journal' });
  const cluster = h('section', { class: 'card wide-card', 'aria-label': 'Cluster', hidden: true });
  const element = h('section', { class: 'stack', 'aria-label': 'Server' },
    h('div', { class: 'section-head' }, h('h2', null, 'Server')),
    h('div', { class: 'server-grid' }, limits, journal, cluster));
  const draw = () => {
    if (!sampler.server) return;
    drawLimits(limits, sampler.server);
    drawJournal(journal, sampler);
    cluster.hidden = !sampler.cluster;
    if (sampler.cluster) drawCluster(cluster, sampler.cluster);
  };
  sampler.addEventListener('sample', draw, { signal });
  sampler.addEventListener('cluster', draw, { signal });
  draw();
  return { element };
}

function meter(label, use, format) {
  const used = num(use?.used);
  const most = num(use?.max);
  const share = most > 0 ? used / most : 0;
  const level = share > 0.95 ? 'bad' : share > 0.8 ? 'warn' : '';
  return h('div', { class: 'meter-row' },
    h('span', { class: 'muted' }, label),
    h('span', { class: 'number right' }, most > 0 ? `${format(used)} of ${format(most)}` : format(used)),
    most > 0 && h('div', {
      class: ['meter', level], role: 'meter', 'aria-label': label, 'aria-valuemin': 0,
      'aria-valuemax': most, 'aria-valuenow': used,
    }, h('div', { style: { width: `${Math.min(100, Math.max(share * 100, used > 0 ? 0.5 : 0))}%` } })));
}

function drawLimits(node, server) {
  const offset = seconds(server.clockOffset);
  replace(node, h('div', { class: 'card-head' }, h('h2', null, 'Limits'),
    server.draining && h('span', { class: 'badge bad' }, 'stopping')),
  server.entries ? [
    meter('Memory', server.memoryBytes, bytes), meter('Entries', server.entries, shortCount),
    meter('Bytes of keys and values', server.bytes, bytes), meter('Namespaces', server.namespaces, count),
    meter('Streams', server.watchers, count), meter('Connections', server.connections, count),
    memoryShares(server.memoryShares),
  ] : h('p', { class: 'muted' }, 'The server shows its limits to callers that may read all namespaces.'),
  Math.abs(offset) > 0.1 && h('p', { class: 'hint' },
    `The machine's clock is ${duration(Math.abs(offset))} ${offset > 0 ? 'ahead of' : 'behind'} the server's.`));
}

const SHARES = [['entriesBytes', 'entries', '--series-1'], ['retainedBytes', 'retained events', '--series-2'],
  ['backlogBytes', 'backlogs', '--series-4']];

function memoryShares(shares) {
  const total = SHARES.reduce((sum, [id]) => sum + num(shares?.[id]), 0);
  if (total === 0) return null;
  return h('div', { class: 'shares' },
    h('div', { class: 'share-bar', role: 'img', 'aria-label': 'How memory is used' }, SHARES.map(([id,, token]) =>
      h('div', { style: { width: `${(num(shares[id]) / total) * 100}%`, background: `var(${token})` } }))),
    h('div', { class: 'share-legend' }, SHARES.map(([id, label, token]) => h('span', null,
      h('span', { class: 'swatch', style: { background: `var(${token})` } }), `${label} ${bytes(shares[id])}`))));
}

const CHECKPOINT = { CHECKPOINT_STATE_WRITING: 'a checkpoint is being written' };

function drawJournal(node, { server, history }) {
  const { journal } = server;
  if (!journal) {
    replace(node, h('div', { class: 'card-head' }, h('h2', null, 'Journal')),
      h('p', { class: 'muted' }, server.entries
        ? 'None: every namespace is in memory only.' : 'Shown to callers that may read all namespaces.'));
    return;
  }
  const commits = num(journal.commits);
  const facts = [
    ['Place', journal.directory],
    ['Disk', bytes(journal.diskBytes)],
    ['Commits', `${rate(history.last('commits'))}, ${bytes(history.last('written') || 0)}/s`],
    ['Appends a commit', commits > 0 ? Number((num(journal.appends) / commits).toPrecision(3)) : '–'],
    ['Commit takes', `${duration(history.last('commitTime'))} now, 99 % below ${duration(seconds(journal.commitP99))}`],
    ['Checkpoints', `${count(journal.checkpoints)}${CHECKPOINT[journal.checkpointState]
      ? `, ${CHECKPOINT[journal.checkpointState]}` : ''}`],
  ];
  replace(node, h('div', { class: 'card-head' }, h('h2', null, 'Journal'),
    journal.diskFull ? h('span', { class: 'badge bad' }, 'disk full: changes are refused')
      : h('span', { class: 'badge ok' }, 'writing')),
  h('dl', { class: 'facts-list' }, facts.map(([label, value]) => [h('dt', null, label),
    h('dd', { class: 'number' }, value)])),
  meter('Waits for the disk', journal.waitingBytes, bytes));
}

const ROLES = { OWNER: 'ok', STANDBY: '', TAKING_OVER: 'warn', GONE: 'bad' };

// Who owns, and whether all is owned.
function ownership(cluster) {
  const slots = cluster.slots ?? [];
  if (slots.length > 0) {
    const owned = slots.filter((slot) => slot.owner).length;
    return [`${owned} of ${plural(slots.length, 'slot')} have an owner`, owned === slots.length];
  }
  return cluster.owner
    ? [`${cluster.owner} owns since ${duration((Date.now() - time(cluster.ownerSince)) / 1000)}`, true]
    : ['no node owns', false];
}

function drawCluster(node, cluster) {
  const [owner, isOwned] = ownership(cluster);
  const rows = (cluster.nodes ?? []).map((each) => {
    const role = enumText(each.role, 'NODE_ROLE');
    const lag = num(each.lagMessages);
    return [each.name, each.address,
      h('span', { class: ['badge', ROLES[(each.role ?? '').replace('NODE_ROLE_', '')]] }, role),
      each.role === 'NODE_ROLE_OWNER' ? '–' : `${plural(lag, 'message')}${
        lag > 0 && each.lagAge ? `, ${duration(seconds(each.lagAge))}` : ''}`,
      each.caughtUp ? 'yes' : 'no', `${duration(seconds(each.sinceHeartbeat))} ago`, each.version];
  });
  replace(node, h('div', { class: 'card-head' }, h('h2', null, `Cluster ${cluster.name}`),
    h('span', { class: ['badge', isOwned ? 'ok' : 'bad'] }, owner)),
  table('Nodes', ['Node', 'Address', 'Role', 'Lag', 'May take over', 'Heartbeat', 'Version']
    .map((label) => ({ label, class: label === 'Address' ? '' : 'nowrap' })), rows),
  (cluster.wrongSettings ?? []).map((each) => h('p', { class: 'error' },
    `${each.topic}: ${each.setting} is ${each.value}, and has to be ${each.wanted}.`)),
  cluster.waitsFor && h('p', { class: 'hint' }, `${cluster.node} does not take over: ${cluster.waitsFor}.`));
}
