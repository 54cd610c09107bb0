import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { atFileEnd } from '../support/clean-up.ts'
import { readTarget } from './target.ts'

it.each(['', '{"serviceToken": "SECRET', '[]', 'null', '{"serviceToken": ["SECRET"]}'])(
  'a target file with the content %s is refused with its name, and without its content',
  async (content) => {
    const folder = await mkdtemp(join(tmpdir(), 'target-'))
    atFileEnd(() => rm(folder, { recursive: true }))
    const path = join(folder, 'target.json')
    await writeFile(path, content)
    const { message } = await readTarget(path).then(
      () => ({ message: '' }),
      (error: Error) => error,
    )
    expect(message).toContain(path)
    expect(message).not.toContain('SECRET')
  },
)
