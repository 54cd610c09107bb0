import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { enginePlace } from '../../dev/engine/engine-place.ts'
import { nodeForEngine } from '../../dev/engine/glibc.ts'
import { hostEngine } from '../../dev/engine/hosted-engine.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { isAlive, residentBytes } from '../support/proc.ts'
import { freePort, inheritedEnvironment, startProcess } from '../support/processes.ts'
import { until } from '../support/until.ts'
import { startVisitor } from '../support/visitor.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const limitMiB = 320
const [streams, senders, messagesEach] = [500, 64, 20]
const origin = 'https://shop.example'
const groups = '/sys/fs/cgroup/memory'
const mib = (bytes: number) => Math.round(bytes / 2 ** 20)

/** Makes a limited control group of memory. Returns undefined where this user cannot. */
async function makeGroup() {
  const path = join(groups, `service-small-${process.pid}`)
  try {
    await mkdir(path)
    await writeFile(join(path, 'memory.limit_in_bytes'), String(limitMiB * 2 ** 20))
  } catch {
    return undefined
  }
  // A group can be removed when its last process is gone.
  atFileEnd(() =>
    until('the control group to be empty', () =>
      rmdir(path).then(
        () => true,
        () => false,
      ),
    ),
  )
  return path
}

const group = await makeGroup()
if (!group) console.log('Skipped: needs control groups of memory (version 1), and root.')

it.skipIf(!group)(
  `${limitMiB} MiB hold the service and its database under ${senders} senders, ${streams} streams and a backup`,
  async () => {
    const [dataDir, database] = [await mkdtemp(join(tmpdir(), 'small-')), await mkdtemp(join(tmpdir(), 'small-db-'))]
    for (const folder of [dataDir, database]) atFileEnd(() => rm(folder, { recursive: true, force: true }))
    await buildConsoleIfStale()
    const inGroup = ['/bin/sh', '-c', `echo $$ > ${group}/cgroup.procs && exec "$0" "$@"`]
    const [shell = '', ...entering] = inGroup
    const { signal } = new AbortController()
    const place = enginePlace(database)
    for (const folder of [place.databaseDir, place.scratchDir]) await mkdir(folder, { recursive: true })
    const node = await nodeForEngine({ logger: console, signal })
    const command = { file: shell, args: [...entering, node.file, ...node.args] }
    const hosted = await hostEngine({ place, command, logger: console, signal })
    atFileEnd(() => hosted.stop())
    const engine = hosted.pid ?? 0

    const env: Record<string, string> = {
      MONGODB_URI: place.uri,
      DATA_DIR: dataDir,
      LOG_LEVEL: 'warn',
      RATE_LIMIT_FACTOR: '1000',
      GATEWAY_PORT: String(await freePort()),
      CORE_PORT: String(await freePort()),
    }
    const gatewayUrl = `http://localhost:${env.GATEWAY_PORT}`
    const nodeArgs = ['--import', './platform/stripped.mjs', '--max-old-space-size=112', '--max-semi-space-size=8']
    await run(process.execPath, ['platform/stripped.mjs'], { cwd: root })
    const readyUrl = `${gatewayUrl}/readyz`
    const service = await startProcess({ entry: 'serve/main.ts', env, nodeArgs, through: inGroup, readyUrl })
    atFileEnd(() => service.stop())
    const role = async (name: string, args: string[], through: string[] = []) => {
      const [program = '', ...given] = [...through, process.execPath, 'serve/run.ts', name, ...args]
      return (await run(program, given, { cwd: root, env: { ...inheritedEnvironment(), ...env } })).stdout
    }
    const admin = async (...args: string[]) => JSON.parse(await role('admin', [...args, '--json']))
    const [{ workspaceId }] = (await admin('workspaces', 'list')).workspaces
    const site = await admin('connections', 'create', '--workspace', workspaceId, '--name', 'Website')
    const made = await admin(
      'installations',
      'create',
      '--connection',
      site.connection.connectionId,
      '--origin',
      origin,
    )
    const siteKey: string = made.installation.publicSiteKey

    const memory = async () => ({
      service: mib(await residentBytes(service.pid)),
      engine: mib(await residentBytes(engine)),
    })
    const processorMs = async (pid: number) => {
      const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]!.split(' ')
      return (Number(fields[11]) + Number(fields[12])) * 10
    }
    const share = async (seconds: number) => {
      const used = async () => (await processorMs(service.pid)) + (await processorMs(engine))
      const before = await used()
      await delay(seconds * 1000)
      return `${(((await used()) - before) / (seconds * 10)).toFixed(1)} % of a processor`
    }
    await delay(10_000)
    console.log('at rest', await memory(), await share(30))

    const visitors = []
    while (visitors.length < streams) {
      const some = Array.from({ length: 50 }, () => startVisitor({ gatewayUrl, origin, siteKey }))
      visitors.push(...(await Promise.all(some)))
    }
    for (const visitor of visitors) await visitor.openStream({ after: 0 })
    console.log(`with ${streams} streams`, await memory(), await share(30))

    const backup = role('backup', [], inGroup)
    const accepted = await Promise.all(
      visitors.slice(0, senders).map(async (visitor) => {
        const ids: string[] = []
        while (ids.length < messagesEach)
          ids.push((await visitor.sendUntilAccepted(`message ${ids.length}`)).body.messageId)
        return ids
      }),
    )
    expect(await backup).toContain('Backed up and verified')
    for (const [index, ids] of accepted.entries())
      expect((await visitors[index]!.history()).map(({ messageId }) => messageId)).toEqual(ids)
    const peak = Number(await readFile(join(group!, 'memory.max_usage_in_bytes'), 'utf8'))
    console.log(
      `after ${senders * messagesEach} messages and a backup`,
      await memory(),
      `group's peak ${mib(peak)} MiB`,
    )
    expect([service.pid, engine].map(isAlive)).toEqual([true, true])
    expect(await readFile(join(group!, 'memory.oom_control'), 'utf8')).toMatch(/oom_kill 0\b/)
  },
)
