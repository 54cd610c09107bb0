import { readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { freePort } from '../processes.ts'

const pageBytes = 4096

/** Node arguments that add a heap probe to a process, and a function that reads it. */
export async function heapProbe(): Promise<{ nodeArgs: string[]; heapBytes: () => Promise<number> }> {
  const port = await freePort()
  const url = pathToFileURL(join(import.meta.dirname, 'memory-probe.ts'))
  url.searchParams.set('port', String(port))
  return {
    nodeArgs: ['--import', url.href],
    heapBytes: async () => Number(await text(connect(port, '127.0.0.1'))),
  }
}

/** Kernel memory of the whole system in bytes, including sockets. */
export async function slabBytes(): Promise<number> {
  const kilobytes = /^Slab:\s+(\d+)/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  return Number(kilobytes) * 1024
}

/** Number of open files and sockets of processes. */
export async function openFiles(pids: number[]): Promise<number> {
  const counts = await Promise.all(pids.map(async (pid) => (await readdir(`/proc/${pid}/fd`)).length))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Resident memory of these processes without their children, so without a core's engine. */
export async function residentBytes(pids: number[]): Promise<number> {
  const pages = await Promise.all(pids.map(async (pid) => (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ')[1]))
  return pages.reduce((sum, each) => sum + Number(each) * pageBytes, 0)
}
