import type { MongoClient } from 'mongodb'
import type { CoreMetrics } from '../metrics.ts'

/**
 * Measures the duration of the commands of a client and counts its pooled connections. The client
 * must have command monitoring enabled.
 */
export function measureDatabase(
  client: MongoClient,
  { databaseDuration, databaseFailures, databaseConnections }: CoreMetrics,
): void {
  client.on('commandSucceeded', ({ commandName: command, duration }) =>
    databaseDuration.observe({ command }, duration / 1000),
  )
  client.on('commandFailed', ({ commandName: command }) => databaseFailures.inc({ command }))
  client.on('connectionCreated', () => databaseConnections.inc({ state: 'open' }))
  client.on('connectionClosed', () => databaseConnections.dec({ state: 'open' }))
  client.on('connectionCheckedOut', () => databaseConnections.inc({ state: 'in_use' }))
  client.on('connectionCheckedIn', () => databaseConnections.dec({ state: 'in_use' }))
}
