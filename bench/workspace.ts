import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Temporary folders, removed when the bench exits. */
export const scratchFolders: string[] = []

export async function scratchFolder(name: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `service-bench-${name}-`))
  scratchFolders.push(folder)
  return folder
}
