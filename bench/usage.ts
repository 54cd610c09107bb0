import { readdir, readFile } from 'node:fs/promises'

/** Linux counts CPU time in hundredths of a second. */
const ticksPerSecond = 100
const pageBytes = 4096

export interface Usage {
  cpuSeconds: number
  residentMb: number
}

/** CPU time and memory of the processes and their running descendants. */
export async function usageOf(pids: number[]): Promise<Usage> {
  const all = new Map(
    (await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(readStat))).flatMap((stat) =>
      stat ? [[stat.pid, stat] as const] : [],
    ),
  )
  const counted = [...all.values()].filter(({ pid }) => descendsFrom(pid, new Set(pids), all))
  return {
    cpuSeconds: counted.reduce((sum, { ticks }) => sum + ticks, 0) / ticksPerSecond,
    residentMb: (counted.reduce((sum, { pages }) => sum + pages, 0) * pageBytes) / 1e6,
  }
}

/** Ids of the child processes. */
export async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.trim().split(' ').map(Number)
}

interface Stat {
  pid: number
  parent: number
  ticks: number
  pages: number
}

async function readStat(pid: string): Promise<Stat | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  // In /proc/<pid>/stat, the process name may contain any character, also brackets (proc(5)). So
  // the other fields begin after the last closing bracket.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const [, parent, ...rest] = fields
  return {
    pid: Number(pid),
    parent: Number(parent),
    ticks: Number(rest[9]) + Number(rest[10]),
    pages: Number(rest[19]),
  }
}

function descendsFrom(pid: number, wanted: Set<number>, all: Map<number, Stat>): boolean {
  for (let each: number | undefined = pid; each; each = all.get(each)?.parent) if (wanted.has(each)) return true
  return false
}
