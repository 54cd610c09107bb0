import { freePort, type StartedProcess, startProgram } from '../test/support/processes.ts'
import { programVersion } from './peers.ts'
import { scratchFolder } from './workspace.ts'

/**
 * Starts a Redis that writes to its append-only file and syncs the file each second, or before each
 * answer. Throws if Redis is not installed.
 */
export async function startRedis(
  appendfsync: 'everysec' | 'always',
): Promise<{ running: StartedProcess; port: number }> {
  if ((await programVersion('redis-server')) === undefined) {
    throw new Error('redis-server is not installed (Debian: apt-get install redis-server)')
  }
  const port = await freePort()
  const folder = await scratchFolder('redis')
  const persistence = ['--appendonly', 'yes', '--appendfsync', appendfsync, '--save', '']
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--logfile', 'redis.log']
  return { running: await startProgram('redis-server', [...args, ...persistence], port), port }
}
