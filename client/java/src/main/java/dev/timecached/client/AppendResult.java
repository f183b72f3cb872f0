package dev.timecached.client;

/**
 * What an append did.
 *
 * @param version the entry's new one
 * @param valueBytes the value's new length
 * @param created whether the key was not there
 */
public record AppendResult(long version, long valueBytes, boolean created) {}
