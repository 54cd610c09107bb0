import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { openFiles, residentBytes } from '../../test/support/proc.ts'
import { freePort } from '../../test/support/processes.ts'

/**
 * Returns Node arguments that add a heap probe to a process, and a function that reads the probe.
 */
export async function heapProbe(): Promise<{ nodeArgs: string[]; heapBytes: () => Promise<number> }> {
  const port = await freePort()
  const url = pathToFileURL(join(import.meta.dirname, 'memory-probe.ts'))
  url.searchParams.set('port', String(port))
  return {
    nodeArgs: ['--import', url.href],
    heapBytes: async () => Number(await text(connect(port, '127.0.0.1'))),
  }
}

/** Kernel slab memory of the whole system in bytes. It includes socket buffers. */
export async function slabBytes(): Promise<number> {
  const kilobytes = /^Slab:\s+(\d+)/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  return Number(kilobytes) * 1024
}

/** Number of open files and sockets of processes. */
export async function countOpenFiles(pids: number[]): Promise<number> {
  return (await Promise.all(pids.map(openFiles))).reduce((sum, { length }) => sum + length, 0)
}

/**
 * Resident memory of these processes in bytes, without their children. A core's engine is a child.
 */
export async function residentBytesOf(pids: number[]): Promise<number> {
  return (await Promise.all(pids.map(residentBytes))).reduce((sum, each) => sum + each, 0)
}
