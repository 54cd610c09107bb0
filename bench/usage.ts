import { readFile } from 'node:fs/promises'
import { childrenOf } from '../test/support/proc.ts'

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100
const pageBytes = 4096

export interface Usage {
  cpuSeconds: number
  residentMb: number
}

/** CPU time and memory of the processes and their running descendants. */
export async function usageOf(pids: number[]): Promise<Usage> {
  const usages = await Promise.all(
    pids.map(async (pid) => [await usageOfOne(pid), await usageOf(await childrenOf(pid).catch(() => []))]),
  )
  const sum = (figure: keyof Usage) => usages.flat().reduce((total, usage) => total + usage[figure], 0)
  return { cpuSeconds: sum('cpuSeconds'), residentMb: sum('residentMb') }
}

async function usageOfOne(pid: number): Promise<Usage> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The process name may contain any character, also brackets (proc(5)). So the other fields begin after the last one.
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  // User and system time, also of children that have ended. Memory in pages.
  const ticks = fields.slice(11, 15).reduce((sum, each) => sum + each, 0)
  const pages = fields[21] ?? 0
  return { cpuSeconds: ticks / ticksPerSecond, residentMb: (pages * pageBytes) / 1e6 }
}
