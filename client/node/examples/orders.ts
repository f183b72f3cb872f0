// Orders that are cancelled when they are not paid within 15 minutes, by one of the workers of a group. Arguments:
//
//     [--server ADDRESS] place ID CUSTOMER TOTAL
//     [--server ADDRESS] pay ID
//     [--server ADDRESS] work

import { parseArgs } from 'node:util';
import { TimecacheClient, type GroupWorker, type WorkerOptions } from 'timecached';

const NAMESPACE = 'orders';
const GROUP = 'cancellation';
const PAYMENT_MS = 15 * 60_000;

export interface Order {
  customer: string;
  total: number;
}

export class Orders {
  readonly #client: TimecacheClient;

  private constructor(client: TimecacheClient) {
    this.#client = client;
  }

  /**
   * Makes namespace and group if they are not there: the group before the first order, so that none is missed, however
   * late the first worker comes. With a journal, ask for the durability SYNC.
   */
  static async open(
    client: TimecacheClient,
    durability: 'MEMORY' | 'ASYNC' | 'SYNC' = 'MEMORY',
  ): Promise<Orders> {
    const orders = new Orders(client.namespace(NAMESPACE));
    const unlessThere = (error: { code?: string }) => {
      if (error.code !== 'ALREADY_EXISTS') throw error;
    };
    await client.createNamespace(NAMESPACE, { ttlMs: PAYMENT_MS, durability }).catch(unlessThere);
    await orders.#client.createGroup(GROUP, { ackTimeoutMs: 60_000 }).catch(unlessThere);
    return orders;
  }

  /** From now on the order waits for its payment. */
  async place(id: string, order: Order): Promise<void> {
    await this.#client.putJson(id, order);
  }

  /** Whether the payment came in time. */
  async pay(id: string): Promise<boolean> {
    return (await this.#client.remove(id)).removed;
  }

  /** Works on what was not paid: `cancel` is called for each such order, again where it fails. */
  work(
    cancel: (id: string, order: Order) => Promise<void>,
    options: Partial<WorkerOptions> = {},
  ): GroupWorker {
    return this.#client.worker({ ...options, group: GROUP }, async ({ key, value }) => {
      await cancel(key.toString(), JSON.parse(value.toString()) as Order);
    });
  }
}

async function run(
  client: TimecacheClient,
  [command, id = '', customer = '', total]: string[],
): Promise<void> {
  const orders = await Orders.open(client);
  if (command === 'place' && total !== undefined) {
    await orders.place(id, { customer, total: Number(total) });
  } else if (command === 'pay' && id) {
    console.log((await orders.pay(id)) ? `${id} is paid` : `${id} comes too late, or is not known`);
  } else if (command === 'work') {
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
    const cancel = async (id: string, order: Order) =>
      console.log(`cancelled ${id}: ${order.customer} did not pay ${order.total}`);
    await orders.work(cancel, { signal: stop.signal }).finished;
  } else {
    throw new Error('expected place ID CUSTOMER TOTAL, pay ID or work');
  }
}

function main(): void {
  const options = { server: { type: 'string', default: '127.0.0.1:7171' } } as const;
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const client = new TimecacheClient(values.server!);
  run(client, positionals)
    .catch((error: unknown) => {
      console.error(String(error));
      process.exitCode = 1;
    })
    .finally(() => client.close());
}

if (require.main === module) main();
