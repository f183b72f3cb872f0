/**
 * A client of timecached, an in-memory key-value server whose entries expire on schedule and are
 * told, with their values, to those who watch.
 *
 * <p>{@link dev.timecached.client.TimecacheClient} has the calls;
 * {@link dev.timecached.client.Watcher} tells what expired;
 * {@link dev.timecached.client.GroupWorker} handles each expiry at one of many workers;
 * {@link dev.timecached.client.Pipeline} is for many operations;
 * {@link dev.timecached.client.recipes} has locks, tables, joins and others that are built from
 * these. All failures are {@link dev.timecached.client.TimecacheException}s.
 *
 * <p>Keys and values are bytes. Methods that take strings send their UTF-8. Times are on the
 * server's clock, which in tests may be a virtual one, with a resolution of a microsecond.
 */
package dev.timecached.client;
