import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * First reserved port. All reserved ports are below 32768, the start of the range from which Linux
 * chooses the ports of outgoing connections.
 */
const firstPort = 20_000
const portCount = 12_000
/** Contains one file for each port that a test process has reserved, with the id of that process. */
const reservations = join(tmpdir(), 'service-test-ports')

let next = Math.floor(Math.random() * portCount)
const reserved = new Set<string>()
process.once('exit', () => {
  for (const file of reserved) rmSync(file, { force: true })
})

/**
 * Returns a free port for a process that will listen on it later. No other test process on this
 * machine gets the same port.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < portCount; tries++) {
    const port = firstPort + (next++ % portCount)
    if (reserve(port) && (await isFree(port))) return port
  }
  throw new Error('no free port')
}

function reserve(port: number): boolean {
  mkdirSync(reservations, { recursive: true })
  const file = join(reservations, `${port}`)
  try {
    writeFileSync(file, `${process.pid}`, { flag: 'wx' })
  } catch {
    if (isHolderAlive(file)) return false
    writeFileSync(file, `${process.pid}`)
  }
  reserved.add(file)
  return true
}

function isHolderAlive(file: string): boolean {
  try {
    process.kill(Number(readFileSync(file, 'utf8')), 0)
    return true
  } catch {
    return false
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port), 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
