package dev.timecached.client;

/**
 * What a worker has done since its start.
 *
 * @param handled handlers that have returned, or thrown
 * @param thrown of these, that have thrown
 * @param acked events settled by ack
 * @param nacked events given back by nack, or for a handler that threw
 * @param putBack events settled by put-back, put or let go
 * @param terminated events given up by terminate
 * @param stale settled too late: the event had been given to another member, or was done
 * @param unsettled not settled, refused or not delivered: the event is given out again
 * @param lost the sum of what {@link GroupWorkerOptions#onLoss} was told
 */
public record GroupWorkerCounters(
    long handled,
    long thrown,
    long acked,
    long nacked,
    long putBack,
    long terminated,
    long stale,
    long unsettled,
    long lost) {}
