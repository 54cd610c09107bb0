import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv, promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { buildConsoleIfStale } from '../../console/build.ts'
import { atFileEnd } from '../support/clean-up.ts'
import { freePort, inheritedEnvironment, startProcess, startProgram } from '../support/processes.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { root } from './dockerfile.ts'

const run = promisify(execFile)
const hasCaddy = existsSync('/usr/bin/caddy') && existsSync('/usr/bin/curl')
if (!hasCaddy) console.info('caddy is not installed; skipping the test of the installation without containers')

const database = testDatabase({ isNew: true })
const read = (name: string) => readFileSync(join(root, 'deploy/one-server', name), 'utf8')
/** Returns the arguments of Node in a unit: its options, and the role with its flags. */
function commandOf(unit: string) {
  const [, line = ''] = /^ExecStart=\/usr\/local\/bin\/node (.*)$/m.exec(read(unit)) ?? []
  const words = line.split(' ')
  const entry = words.indexOf('serve/run.ts')
  return { nodeArgs: words.slice(0, entry), entry: words[entry]!, args: words.slice(entry + 1) }
}

describe.skipIf(!hasCaddy)('the units and the Caddyfile of one server', () => {
  it('serve the console over TLS, carry a message and its event, bridge a restart, and back up', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'service-debian-'))
    atFileEnd(() => rm(folder, { recursive: true, force: true }))
    await buildConsoleIfStale()
    const [port, gatewayPort] = [await freePort(), await freePort()]
    const domain = `localhost:${port}`
    const env: Record<string, string> = {
      ...(parseEnv(readFileSync(join(root, 'service.env.example'), 'utf8')) as Record<string, string>),
      DOMAIN: 'localhost',
      PUBLIC_URL: `https://${domain}`,
      MONGODB_URI: database.uri,
      MONGODB_DATABASE: database.name,
      DATA_DIR: join(folder, 'data'),
      GATEWAY_PORT: String(gatewayPort),
      CORE_PORT: String(await freePort()),
      LOG_LEVEL: 'warn',
      NODE_ENV: 'production',
    }
    const start = () =>
      startProcess({ ...commandOf('chat.service'), env, readyUrl: `http://127.0.0.1:${gatewayPort}/readyz` })
    let service = await start()
    // Keeps the certificate authority of the test out of the machine's, and the port 80 free.
    const options = `{\n\tskip_install_trust\n\tadmin off\n\tauto_https disable_redirects\n\tstorage file_system ${folder}/caddy\n}\n`
    await writeFile(join(folder, 'Caddyfile'), options + read('Caddyfile'))
    const names = ['env', `DOMAIN=${domain}`, `SERVICE=localhost:${gatewayPort}`, `HOME=${folder}`]
    const config = ['--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
    const [first, ...others] = [...names, '/usr/bin/caddy', 'run', ...config]
    await startProgram(first!, others, port)
    const authority = join(folder, 'caddy/pki/authorities/local/root.crt')
    await until('the authority', () => existsSync(authority))
    const curl = async (...args: string[]) =>
      (await run('curl', ['-sS', '--fail-with-body', '--cacert', authority, ...args])).stdout

    const consolePage = await until('the certificate', () => curl(`https://${domain}/console/`).catch(() => ''))
    expect(consolePage).toContain('<html')
    const link = new URL(/https\S+#sign-in=\S+/.exec(service.output())![0])
    const signIn = ['-i', '-H', `Origin: https://${domain}`, '-H', 'X-Service-Console: 1', '--json']
    const body = JSON.stringify({ link: link.hash.slice('#sign-in='.length), displayName: 'Ada' })
    expect(await curl(...signIn, body, `${link.origin}/console/session/sign-in`)).toMatch(/^set-cookie: .*secure/im)

    const role = async (...args: string[]) => {
      const settings = { cwd: root, env: { ...inheritedEnvironment(), ...env } }
      return (await run(process.execPath, ['serve/run.ts', ...args], settings)).stdout
    }
    const admin = async (...args: string[]) => JSON.parse(await role('admin', ...args, '--json'))
    const [{ workspaceId }] = (await admin('workspaces', 'list')).workspaces
    const made = await admin('connections', 'create', '--workspace', workspaceId, '--name', 'Website')
    const site = ['--connection', made.connection.connectionId, '--origin', 'https://shop.example']
    const siteKey = (await admin('installations', 'create', ...site)).installation.publicSiteKey
    const api = `https://${domain}/api/integrations/v1/widget`
    const page = ['-H', 'Origin: https://shop.example', '-H', 'X-Service-Widget-Version: 1.0']
    const post = (key: string) => [...page, '-H', `Idempotency-Key: ${key}`, '--json']
    const begun = JSON.stringify({ publicSiteKey: siteKey, clientInstanceId: 'curl' })
    const { accessGrant } = JSON.parse(await curl(...post('session-1'), begun, `${api}/sessions`))
    const authorized = ['-H', `Authorization: Bearer ${accessGrant}`]
    const send = (key: string) => {
      const message = JSON.stringify({ clientOperationId: key, body: key, contentType: 'text' })
      return curl(...authorized, ...post(key), message, `${api}/messages`)
    }
    // The stream stays open, so a proxy that buffers would show nothing.
    const stream = curl('-N', '--max-time', '6', ...page, ...authorized, `${api}/events?afterSequence=0`)
    expect(await send('operation-1')).toContain('"sequence":1')
    expect(await stream.catch(({ stdout }) => stdout)).toContain('operation-1')

    await service.stop()
    const history = curl(...page, ...authorized, `${api}/messages?afterSequence=0`).catch(({ stderr }) => stderr)
    service = await start()
    expect(await history).toContain('operation-1')
    expect(await send('operation-2')).toContain('"sequence":2')

    const { nodeArgs, args } = commandOf('chat-backup.service')
    expect(nodeArgs).toEqual(['--max-old-space-size-percentage=50'])
    expect(await role(...args)).toMatch(/Backed up and verified[\s\S]*started a core on it/)
    await service.stop()
    expect(service.output()).not.toMatch(/ {4}at |"level":50/)
  })
})
