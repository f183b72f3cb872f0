/** Tracing of a client by OpenTelemetry, whose API a program that uses this brings by itself. */
package dev.timecached.client.opentelemetry;
