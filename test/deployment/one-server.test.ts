import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { serveSettings } from '../../serve/config.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { composeFaults } from './compose-faults.ts'
import { root } from './dockerfile.ts'
import { parts } from './settings.ts'

const run = promisify(execFile)

interface Service {
  image?: string
  build?: string
  entrypoint?: string[]
  environment?: Record<string, string>
  env_file?: string
  mem_limit: string
  networks: string[]
  ports?: string[]
  profiles?: string[]
  user?: string
  read_only?: boolean
  volumes: string[]
}
const compose: { services: Record<string, Service>; volumes: object; networks: Record<string, { internal?: true }> } =
  parse(readFileSync(join(root, 'compose.yaml'), 'utf8'), { merge: true })
const { services } = compose
const example = parseEnv(readFileSync(join(root, 'service.env.example'), 'utf8'))
/** Returns the script of a container as its shell gets it: Compose makes `$$` to `$`. */
const scriptOf = (name: string) => services[name]!.entrypoint![2]!.replaceAll('$$', '$')

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'service-compose-'))
  atFileEnd(() => rm(folder, { recursive: true, force: true }))
})

/** Runs a script in which the programs of the image are replaced by the given scripts. */
async function runScript(script: string, programs: Record<string, string>) {
  for (const [name, text] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/bin/bash\n${text}\n`)
    await chmod(join(folder, name), 0o755)
  }
  return run('bash', ['-c', script.replaceAll('/database/', `${folder}/`)], {
    env: { PATH: `${folder}:/usr/local/bin:/usr/bin:/bin` },
  })
}

describe('compose.yaml', () => {
  it('compose.yaml is valid according to the Compose Specification, and names existing volumes and networks', () => {
    expect(composeFaults(compose)).toBeNull()
    for (const { volumes, networks } of Object.values(services)) {
      for (const [source = ''] of volumes.map((volume) => volume.split(':')))
        if (source.startsWith('./')) expect(existsSync(join(root, source)), source).toBe(true)
        else expect(compose.volumes).toHaveProperty(source)
      for (const network of networks) expect(compose.networks).toHaveProperty(network)
    }
  })

  it('compose.yaml fits 1.1 GB, publishes the proxy only, and keeps the database away from the internet', () => {
    const running = Object.values(services).filter(({ profiles }) => !profiles)
    const megabytes = running.map(({ mem_limit }) => Number(/^(\d+)m$/.exec(mem_limit)?.[1]))
    expect(megabytes.reduce((sum, each) => sum + each)).toBeLessThanOrEqual(1100)
    const published = Object.entries(services).filter(([, { ports }]) => ports)
    expect(published.map(([name]) => name)).toEqual(['caddy'])
    expect(services.mongo!.networks).toEqual(['database'])
    expect(compose.networks.database?.internal).toBe(true)
  })

  it('compose.yaml gives the service valid settings with the example of service.env, and no writable root', () => {
    for (const name of ['service', 'backup', 'backup-now']) {
      const { environment = {}, build, read_only, env_file } = services[name]!
      expect([build, read_only, env_file]).toEqual(['.', true, 'service.env'])
      const { MONGODB_URI_FILE, ...env } = { ...example, ...environment } as Record<string, string>
      expect(MONGODB_URI_FILE).toBe('/database/uri')
      const names = [...Object.keys(serveSettings.properties), ...Object.values(parts).flatMap((part) => part.names)]
      expect(Object.keys(env).filter((each) => !names.includes(each))).toEqual([])
      expect(env).toMatchObject({ DATA_DIR: '/data', MONGODB_URI: '' })
    }
  })

  it('the database makes a password at its first start only, which the service and no other user can read', async () => {
    const program = {
      'docker-entrypoint.sh': 'echo "$MONGO_INITDB_ROOT_USERNAME $MONGO_INITDB_ROOT_PASSWORD $*"',
      chown: 'true',
    }
    const first = await runScript(scriptOf('mongo'), program)
    const uri = (await readFile(join(folder, 'uri'), 'utf8')).trim()
    const { username, password, host } = new URL(uri)
    expect([username, host]).toEqual(['service', 'mongo'])
    expect(password.length).toBeGreaterThanOrEqual(32)
    expect(first.stdout).toBe(`service ${password} mongod --bind_ip_all --wiredTigerCacheSizeGB 0.25\n`)
    expect((await stat(join(folder, 'uri'))).mode & 0o777).toBe(0o600)
    expect((await runScript(scriptOf('mongo'), program)).stdout).toBe(first.stdout)
  })

  it('a backup is made each night at three, also after one has failed', async () => {
    const programs = {
      sleep: '[ "$(date -d "+$1 seconds" +%H)" = 03 ] && echo "until three"',
      node: `echo "$@" >> ${folder}/calls; [ $(wc -l < ${folder}/calls) = 1 ] || kill -TERM $PPID; exit 1`,
    }
    const { stdout } = await runScript(scriptOf('backup'), programs).catch((error) => error)
    expect(stdout.match(/until three/g)?.length).toBeGreaterThanOrEqual(2)
    expect((await readFile(join(folder, 'calls'), 'utf8')).split('\n').slice(0, 2)).toEqual(
      Array.from({ length: 2 }, () => 'serve/run.ts backup --drill'),
    )
  })
})
