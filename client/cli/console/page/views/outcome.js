// What came of many operations at once, in a message.
import { toast } from '../dom.js';
import { count, plural } from '../format.js';

// `errors`: of those that failed, {message} each. "12 events settled; 2 not: ...".
export function tellOutcome(total, errors, noun, done) {
  const well = total - errors.length;
  const parts = [];
  if (well > 0 || errors.length === 0) parts.push(`${plural(well, noun)} ${done}.`);
  if (errors.length > 0) {
    const reasons = [...new Set(errors.map(({ message }) => message))];
    parts.push(`${count(errors.length)} not: ${reasons.slice(0, 3).join('; ')}${
      reasons.length > 3 ? '; and other reasons' : ''}.`);
  }
  toast(parts.join(' '), errors.length > 0 ? 'bad' : 'ok');
}
