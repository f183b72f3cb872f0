// Orders that are cancelled when they are not paid within 15 minutes, by one of the workers of a group.

import { type GroupWorker, type TimecacheClient, type WorkerOptions } from 'timecache';

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

  /** Makes namespace and group if they are not there. With a journal, ask for the durability SYNC. */
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
