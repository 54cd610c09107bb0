import { readdir, readFile, readlink } from 'node:fs/promises'

/** Resident memory of a process without its children, in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
}

/** Targets of the open file descriptors of a process; those of sockets begin with `socket:`. */
export async function openFiles(pid: number): Promise<string[]> {
  const folder = `/proc/${pid}/fd`
  // A descriptor may be closed before its link is read. The error of that read is ignored.
  return Promise.all((await readdir(folder)).map((name) => readlink(`${folder}/${name}`).catch(() => '')))
}

/** Process ids of the children that any thread of a process has started. */
export async function childrenOf(pid: number): Promise<number[]> {
  const folder = `/proc/${pid}/task`
  const lists = (await readdir(folder)).map((thread) => readFile(`${folder}/${thread}/children`, 'utf8'))
  return (await Promise.all(lists)).flatMap((children) => children.trim().split(' ').filter(Boolean).map(Number))
}

export function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0)
  } catch {
    return false
  }
}
