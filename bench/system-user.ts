import { execFile } from 'node:child_process'
import { chown } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Gives files to a user of the system, such as `postgres`. Returns the ids of the user and of its group. */
export async function giveTo(user: string, paths: string[]): Promise<{ uid: number; gid: number }> {
  const idOf = async (flag: '-u' | '-g') => Number((await run('id', [flag, user])).stdout)
  const [uid, gid] = await Promise.all([idOf('-u'), idOf('-g')])
  for (const path of paths) await chown(path, uid, gid)
  return { uid, gid }
}
