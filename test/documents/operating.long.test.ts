import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { freePort } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'

const root = join(import.meta.dirname, '../..')
const database = testDatabase()

/** Runs all lines of the script in one shell. */
async function runInShell(script: string, env: Record<string, string>): Promise<{ code: number; output: string }> {
  const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
    cwd: root,
    env: {
      PATH: `${join(process.execPath, '..')}:${process.env.PATH}`,
      HOME: process.env.HOME,
      NODE_COMPILE_CACHE: join(root, '.cache/node'),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  for (const stream of [shell.stdout, shell.stderr]) stream.setEncoding('utf8').on('data', (text) => (output += text))
  const [code] = await once(shell, 'close')
  return { code, output }
}

it.skipIf(!existsSync('/usr/bin/curl'))(
  'the commands of docs/operating.md install a service that accepts and keeps messages',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'service-operations-'))
    onTestFinished(() => rm(folder, { recursive: true, force: true }))
    const text = await readFile(join(root, 'docs/operating.md'), 'utf8')
    const section = text.split('\n## Install by hand')[1]!.split('\n## ')[0]!
    const blocks = [...section.matchAll(/```sh\n(#[^\n]*\n[\s\S]*?)```/g)].map(([, block = '']) => block)
    let script = blocks.join('\n')
    const tries = script.match(/^deploy\/try\.sh.*$/gm) ?? []
    expect(tries).toHaveLength(1)
    // Tries again after the first core is killed. The trap kills background processes even if a line fails.
    script = `trap 'kill $(jobs -p) 2> /dev/null || true' EXIT\n${script}\nkill -KILL %1\n${tries[0]}\n`
    for (const port of ['8090', '8091', '8082', '8083', '8092'])
      script = script.replaceAll(port, String(await freePort()))
    script = script
      .replaceAll('make -- secrets\n', `make -- secrets ${folder}/secrets\n`)
      .replaceAll('secrets/', `${folder}/secrets/`)
      .replaceAll(/> ([\w-]+\.log)/g, `> ${folder}/$1`)
    const ended = await runInShell(script, {
      MONGODB_URI: database.uri,
      MONGODB_DATABASE: database.name,
      LOG_LEVEL: 'warn',
      DATA_DIR: join(folder, 'unused'),
    })
    expect(ended).toMatchObject({ code: 0 })
    expect(ended.output).toContain('The database has all that this version needs.')
    expect(ended.output.match(/^"body":"Is anybody there\?"$/gm)).toHaveLength(2)
    expect(existsSync(join(folder, 'unused'))).toBe(false)
  },
)
