import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { MongoClient } from 'mongodb'
import { describe, expect, it, onTestFinished } from 'vitest'
import { adminHere, type CommandResult } from '../support/admin.ts'
import { signAssertion } from '../support/assertion.ts'
import { freePort } from '../support/free-port.ts'
import { isLong, itLong } from '../support/is-long.ts'
import { listen } from '../support/listen.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const database = testDatabase({ isNew: true })
const mongodb = { MONGODB_URI: database.uri, MONGODB_DATABASE: database.name }
const stack = useLocalStack({ database })

const compileCache = join(root, '.cache/node')

async function run(file: string, args: string[], env: Record<string, string> = {}): Promise<CommandResult> {
  const PATH = `${join(root, 'node_modules/.bin')}:/usr/local/bin:/usr/bin:/bin`
  const settings = {
    cwd: root,
    env: { PATH, HOME: tmpdir(), DATA_DIR: stack.dataDir, NODE_COMPILE_CACHE: compileCache, ...mongodb, ...env },
  }
  return promisify(execFile)(file, args, settings).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  )
}

/** Runs the administration command in its own process. */
const adminProcess = (args: string[], env = {}) => run(process.execPath, ['admin/main.ts', ...args], env)

const admin = (args: string[], env = {}) => adminHere(args, { DATA_DIR: stack.dataDir, ...env })

/**
 * Listens for administration commands: the number of arguments and the arguments, each ended by a
 * zero byte. Responds with a line for the exit status, followed by the output. Returns the port.
 */
async function serveAdmin(): Promise<number> {
  const server = createServer((socket) => {
    let received = ''
    socket.setEncoding('utf8').on('data', async (text) => {
      received += text
      const [count, ...args] = received.split('\0').slice(0, -1)
      if (args.length !== Number(count)) return
      const { code, stdout, stderr } = await admin(args)
      socket.end(`${code}\n${stdout}${stderr}`)
    })
  })
  return (await listen(server)).port
}

/**
 * A shell function that replaces `npm run -s`. It sends administration commands to the server of
 * `serveAdmin`. It runs other scripts without npm, because npm takes longer to start than the
 * script takes to run. operating.long.test.ts runs the same scripts with npm.
 */
const npmFunction = (adminPort: number) => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const cases = ['migrate', 'make'].map((name) => `${name}) ${scripts[name]} "$@" ;;`)
  return `
    call_admin() {
      local admin status
      exec {admin}<>/dev/tcp/127.0.0.1/${adminPort}
      printf '%s\\0' $# "$@" >&$admin
      read -r status <&$admin
      cat <&$admin
      exec {admin}>&-
      return $status
    }
    npm() {
      local script=$3; shift 3; [ "\${1-}" != -- ] || shift
      case $script in admin) call_admin "$@" ;; ${cases.join(' ')} *) return 9 ;; esac
    }
  `
}

const visitor = () => {
  const { origin, siteKey } = stack.demo
  return stack.newVisitor({ origin, siteKey })
}

const migrate = (args: string[], env = {}) => run(process.execPath, ['dev/migrate.ts', ...args], env)

describe('npm run migrate', () => {
  it('lists and applies the migrations of an empty database; before that, a core with MIGRATE_AT_START=off does not start', async () => {
    const fresh = { MONGODB_DATABASE: `${database.name}-fresh`, LOG_LEVEL: 'warn' }
    onTestFinished(async () => {
      const client = await new MongoClient(database.uri).connect()
      await client.db(fresh.MONGODB_DATABASE).dropDatabase()
      await client.close()
    })
    const status = await migrate(['--status'], fresh)
    expect(status).toMatchObject({ code: 0, stderr: '' })
    expect(status.stdout).toMatch(/missing +events\.by_sequence\n[\s\S]*to migrate +1 /)
    const core = await run(process.execPath, ['dev/core.ts'], {
      ...fresh,
      CORE_PORT: String(await freePort()),
      MIGRATE_AT_START: 'off',
    })
    expect(core.code).toBe(1)
    expect(core.stderr).toContain('core: the database is behind this version, run npm run migrate: wakeups, ')
    if (!isLong) return
    const twice = await Promise.all([migrate([], fresh), migrate([], fresh)])
    for (const { stdout } of twice) expect(stdout).toBe('The database has all that this version needs.\n')
    expect((await migrate(['--contract'], fresh)).stdout).toBe('The database has all that this version needs.\n')
    expect((await migrate(['--rekey'], fresh)).stdout).toMatch(/^0 secrets re-encrypted\./)
  })
})

describe('the administration command', () => {
  itLong(
    'runs the commands exactly as docs/operating.md prints them',
    async () => {
      const text = readFileSync(join(root, 'docs/operating.md'), 'utf8').split('\n## Administer')[1]!
      const scripts = [...text.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, script]) => script).join('\n')
      const folder = mkdtempSync(join(tmpdir(), 'administration-'))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
      const inFolder = scripts.replaceAll(/> (\w+\.token)/g, `> ${folder}/$1`)
      const ended = await run('bash', ['--norc', '-euo', 'pipefail', '-c', npmFunction(await serveAdmin()) + inFolder])
      expect(ended).toMatchObject({ code: 0, stderr: '' })
      expect(ended.stdout).toMatch(/origins +https:\/\/shop\.example, https:\/\/\*\.shop\.example/)
      expect(ended.stdout).toMatch(/secret +whsec_/)
      expect(ended.stdout).toContain('CONNECTION_STATUS_DISABLED')
      expect(ended.stdout).toContain('The database has all that this version needs.')
      // The created token must have the requested scopes and no other scopes.
      const SERVICE_TOKEN = readFileSync(join(folder, 'admin.token'), 'utf8').trim()
      expect(await adminProcess(['workspaces', 'list'], { SERVICE_TOKEN })).toMatchObject({ code: 0, stderr: '' })
      expect(await adminProcess(['visitors', 'ban', '--session', 'ses_1'], { SERVICE_TOKEN })).toMatchObject({
        code: 1,
        stderr: 'admin: the core answered PermissionDenied\n',
      })
    },
    240_000,
  )

  it('prints help texts, and an error message for invalid arguments', async () => {
    const help = await adminProcess(['--help'])
    expect(help).toMatchObject({ code: 0 })
    for (const name of ['workspaces create', 'installations update', 'visitors erase'])
      expect(help.stdout).toContain(name)
    expect((await admin(['visitors', 'erase', '--help'])).stdout).toContain('--yes')
    const invalidCalls: [string[], string][] = [
      [['visitors', 'praise'], 'there is no command "visitors praise"'],
      [
        ['connections', 'status', '--connection', 'con_1', '--status', 'gone'],
        '--status must be one of enabled, disabled',
      ],
      [['workspaces', 'create'], 'missing: --name'],
      [['visitors', 'erase', '--session', 'ses_1'], 'an erasure cannot be undone; confirm with --yes'],
      [['visitors', 'export'], 'name the visitor: --session, or --workspace and --subject'],
      [['workspaces', 'list', '--token', 'x'], "Unknown option '--token'"],
    ]
    for (const [args, message] of invalidCalls) {
      const ended = await admin(args)
      expect(ended).toMatchObject({ code: 2, stdout: '' })
      expect(ended.stderr).toContain(message)
    }
    expect(await admin(['workspaces', 'list'], { DATA_DIR: '/nowhere' })).toMatchObject({ code: 2 })
  })

  it('exports, erases, bans and unbans visitors', async () => {
    const ada = await visitor()
    const { sessionId } = ada.session
    await ada.send('Where is my parcel?')
    const stream = await ada.openStream({ after: 0 })
    const exported = await admin(['visitors', 'export', '--session', sessionId])
    expect(
      exported.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).kind),
    ).toEqual(expect.arrayContaining(['session', 'conversation', 'event']))
    expect(exported.stdout).toContain('Where is my parcel?')
    const erased = await admin(['visitors', 'erase', '--session', sessionId, '--yes', '--json'])
    expect(JSON.parse(erased.stdout)).toMatchObject({ state: 'ERASURE_STATE_REMOVED', requestedBy: 'demo' })
    await stream.ended
    expect(stream.events.at(-1)?.type).toBe('session.revoked')
    expect((await ada.send('Hello?')).status).toBe(401)
    expect(await admin(['visitors', 'export', '--session', sessionId])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^admin: the core answered NotFound\. Check --session ses_\w+, and whether/),
    })

    const bob = await visitor()
    await admin(['visitors', 'ban', '--session', bob.session.sessionId, '--reason', 'spam'])
    expect((await bob.send('Buy!')).body.code).toBe('VisitorBanned')
    expect((await admin(['visitors', 'unban', '--session', bob.session.sessionId])).code).toBe(0)
  })

  it('unbans a verified visitor by subject after an erasure has removed the sessions', async () => {
    const { siteKey, workspaceId, identity } = stack.demo
    const identify = async () => {
      const shopper = await visitor()
      const body = { assertion: signAssertion({ siteKey, ...identity }, { claims: { sub: 'customer-17' } }) }
      const answer = await shopper.call('POST', '/sessions/identify', {
        body,
        headers: { 'Idempotency-Key': randomUUID() },
      })
      return { answer, session: shopper.session.sessionId as string }
    }
    const subject = ['--workspace', workspaceId, '--subject', 'customer-17']
    const { answer, session } = await identify()
    expect(answer.status).toBe(200)
    await admin(['visitors', 'ban', '--session', session])
    await admin(['visitors', 'erase', ...subject, '--yes'])
    expect((await admin(['visitors', 'unban', '--session', session])).code).toBe(1)
    expect((await identify()).answer.body.code).toBe('VisitorBanned')
    expect((await admin(['visitors', 'unban', ...subject])).code).toBe(0)
    expect((await identify()).answer.status).toBe(200)
    expect(await admin(['visitors', 'unban'])).toMatchObject({ code: 2 })
  })

  it('sets the policies of an installation and the suppression list, and shows who changed them', async () => {
    const { gatewayUrl, origin, siteKey, workspaceId } = { ...stack.demo, gatewayUrl: stack.gateways[0]!.url }
    const site = ['--site-key', siteKey]
    const list = ['--workspace', workspaceId]
    const folder = mkdtempSync(join(tmpdir(), 'policies-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const file = join(folder, 'people.csv')
    writeFileSync(file, '\uFEFFName;E-mail;Phone\r\n"Lovelace; Ada";Ada@Example.com;+43 660 1234567\r\n')
    const ok = async (...args: string[]) => {
      const { code, stdout, stderr } = await admin([...args, '--json'])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
      return JSON.parse(stdout)
    }
    await ok('installations', 'capabilities', ...site, '--on', 'pageContext', '--off', 'typing')
    const hours = ['--hours', 'mon-fri 09:00-17:00', '--exception', '2026-12-25']
    await ok('installations', 'availability', ...site, '--mode', 'away', '--time-zone', 'Europe/Vienna', ...hours)
    await ok('installations', 'translate', ...site, '--language', 'de', '--title', 'Schreiben Sie uns')
    const policy = ['--required', 'yes', '--url', 'https://shop.example/privacy', '--version', 'v1']
    await ok('installations', 'consent', ...site, ...policy)
    const config = await until('the configuration', async () => {
      const headers = { Origin: origin, 'X-Service-Widget-Version': '1.0' }
      const read = await fetch(`${gatewayUrl}/api/integrations/v1/widget/config/${siteKey}`, { headers })
      const found = (await read.json()) as { consent: { required: boolean } }
      return found.consent.required ? found : undefined
    })
    expect(config).toMatchObject({
      capabilities: { pageContext: true, typing: false },
      availability: { online: false },
      appearance: { translations: { de: { title: 'Schreiben Sie uns' } } },
      consent: { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: 'v1' },
    })

    const add = ['suppressions', 'add', ...list, '--file', file, '--reason', 'asked us']
    expect(await ok(...add)).toEqual({ added: 2, existing: 0 })
    expect(await ok(...add)).toEqual({ added: 0, existing: 2 })
    expect((await ok('suppressions', 'list', ...list)).suppressions).toMatchObject([
      { addedBy: 'demo', reason: 'asked us' },
      { addedBy: 'demo', reason: 'asked us' },
    ])
    writeFileSync(file, 'Ada Lovelace\nada@example.com\n')
    expect(await admin(add)).toMatchObject({ code: 2, stderr: expect.stringContaining('line 1') })
    expect(await ok('suppressions', 'remove', ...list, '--email', 'ADA@example.com')).toEqual({ removed: 1 })

    const { changes } = await ok('workspaces', 'changes', ...list)
    expect(changes.map(({ action }: { action: string }) => action)).toEqual(
      expect.arrayContaining(['RemoveSuppressions', 'AddSuppressions', 'UpdateInstallation']),
    )
    const ofSite = (await ok('workspaces', 'changes', ...list, '--target', siteKey)).changes
    expect(ofSite[0]).toMatchObject({
      actor: 'demo',
      confirmed: true,
      settings: expect.arrayContaining([{ name: 'consent.policyVersion', value: 'v1' }]),
    })
    const away = ['--required', 'no']
    await ok('installations', 'consent', ...site, ...away)
    await ok('installations', 'availability', ...site, '--mode', 'auto', '--hours', 'none', '--exception', 'none')
  }, 240_000)
})
