import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { HookService } from '#proto/hook/v1/hook_pb.js'
import { LeadService } from '#proto/lead/v1/lead_pb.js'
import { SessionService } from '#proto/session/v1/session_pb.js'
import { RetentionSchema, WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import eventList from '../contract/event-kinds.json' with { type: 'json' }
import { actionText } from './src/changes/changes-view.tsx'
import german from './src/languages/de.json' with { type: 'json' }
import eventNames from './src/languages/event-names.json' with { type: 'json' }
import fieldNames from './src/languages/field-names.json' with { type: 'json' }
import { textsIn } from './translation.ts'

const sources = globSync('src/**/*.{ts,tsx}', { cwd: import.meta.dirname }).filter(
  (path) => !/\.(test|d)\.ts/.test(path),
)
const texts = sources.flatMap((path) =>
  textsIn(path, readFileSync(join(import.meta.dirname, path), 'utf8')).map(({ key }) => ({ key, path })),
)

/** What may be a text and is code: names, values of props, style classes, and errors that no operator sees. */
const words = new Set([
  ...'auto back check col composer-hint continues copy de details-open down email found inbox info numeric'.split(' '),
  ...'off offline plus polite queue refresh row search send true url _blank'.split(' '),
  ...'Authorization English Deutsch Enter Esc Macintosh NFKD Notification OperationInProgress POST'.split(' '),
  ...'Content-Type PushManager UTC X-Service-Console hh:mm preChat shop.example'.split(' '),
  ...['agent bot', 'composer note', 'dialog wide', 'hint field-error', 'primary wide', 'row unread'],
  ...['stack area-groups', 'stack area-groups all'],
  ...['tag bad', 'tag ok', 'tag warn', 'tag {0}', 'notice {0}', 'button {0}', 'preview at-{0}', 'shell view-{0}'],
  ...['avatar-mark {0}', 'inbox open{0}', 'message {0}{1}{2}', 'message agent outgoing {0}', 'bold {0}px sans-serif'],
  ...['translate(0 {0})', 'event {0}', 'visited {0}', 'op_{0}', '{0}Form', 'report-{0}.csv', '· {0} ms', 'HTTP {0}'],
  ...['signed out', 'screenshot is incomplete'],
])
/** Paths of icons, selectors, addresses and keys of the storage. */
const isCode = (text: string) =>
  words.has(text) || /^(M\d|[.[</]|input:|\{0\}(px|-hint|-error|\/)|service\.console\.|ada@example\.com)/.test(text)

it('every text of the console has a German one, and no German text is left over', () => {
  const keys = new Set([...texts.map(({ key }) => key), ...Object.values(eventNames), ...Object.values(fieldNames)])
  const missing = texts.filter(({ key }) => !(key in german) && !isCode(key))
  expect(missing).toEqual([])
  expect(Object.keys(german).filter((key) => !keys.has(key))).toEqual([])
})

/** Parts of paths that only programs send, and addresses that are no path of a field. */
const programs = [
  ...'assertion attemptNumber auth beforeSequence bot chunk claims clientInstanceId clientOperationId'.split(' '),
  ...'contentType conversationId credential cursor decision end idempotencyKey lastSeenEventId leadId'.split(' '),
  ...'leadIds limit offset outcome p256dh pageToken perDestination renewalToken results room scope'.split(' '),
  ...'source statuses suppressionIds tokenId unassigned waitSeconds when workerId workflowId'.split(' '),
  ...'workspaceId callback console livez readyz session'.split(' '),
  ...'connectionId hookId sessionId siteKey subscriptionId'.split(' '),
]
/** Parts that the core takes from a variable, or names itself. */
const variable = [
  ...RetentionSchema.fields.map(({ localName }) => localName),
  'email',
  'phone',
  'company',
  'message',
  'logo',
]

const core = join(import.meta.dirname, '../core')
/** The calls of operators that are recorded: methods whose body calls one of the functions that do so. */
const recorded = ['workspace.ts', 'session.ts', 'leads/destinations.ts']
  .flatMap((file) => readFileSync(join(core, 'rpc', file), 'utf8').split(/^ {4}(?=(?:async )?\w+(?:\(|: \())/m))
  .filter((code) => /\b(audited|deletion|changed|changedInstallation)\(/.test(code))
  .flatMap((code) => code.match(/^(?:async )?(\w+)/)?.[1] ?? [])
const recordedMethods = [WorkspaceService, SessionService, LeadService, HookService]
  .flatMap(({ methods }) => methods)
  .filter(({ localName }) => recorded.includes(localName))
const recordedFields = recordedMethods
  .flatMap(({ input }) => input.fields.flatMap((each) => [each, ...(each.message?.fields ?? [])]))
  .map(({ localName }) => localName)
  .filter((name) => !programs.includes(name))

it('every recorded change has a name', () => {
  expect(recordedMethods.map(({ name }) => name)).toContain('DeleteHook')
  expect(recordedMethods.map(({ name }) => name).filter((name) => actionText(name) === name)).toEqual([])
})

it('every field that the service can refuse, or records as changed, has a name in both languages', () => {
  const written = globSync('**/*.ts', { cwd: core })
    .filter((path) => !/\.test\.ts|^test\//.test(path))
    .flatMap((path) => [...readFileSync(join(core, path), 'utf8').matchAll(/['`](?:\$\{\w+\})?(\/[\w$/{}.]+)['`]/g)])
    .flatMap(([, path = '']) => path.split('/').filter((part) => /^[a-z]\w*$/.test(part)))
  const refused = [...written, ...variable, ...recordedFields]
  expect([...new Set(refused)].filter((part) => !(part in fieldNames) && !programs.includes(part))).toEqual([])
  expect(Object.keys(fieldNames).filter((part) => !refused.includes(part))).toEqual([])
  expect(Object.values(fieldNames).filter((name) => name !== '' && !(name in german))).toEqual([])
})

it('every event has a name in both languages', () => {
  expect(Object.keys(eventNames).toSorted()).toEqual([...Object.keys(eventList), 'test'].toSorted())
  expect(Object.values(eventNames).filter((name) => !(name in german))).toEqual([])
})

it('a German text has the placeholders of the English one', () => {
  const placeholders = (text: string) => text.match(/\{\d\}|#(?= )/g)?.sort() ?? []
  for (const [english, text] of Object.entries(german))
    expect(placeholders(text), english).toEqual(placeholders(english))
})

it('texts are found in elements, props, literals and templates, and code is not taken for a text', () => {
  const source = `
    const rows = [['open', 'Open'], [Status.OPEN, 'is open']]
    const view = (name: string) => name === 'Ada' ? <p class="big row" title="Who">Hello <b>you</b></p> : \`\${name} left \${'At once'}\`
  `
  expect(textsIn('view.tsx', source).map(({ key }) => key)).toEqual([
    'Open',
    'is open',
    'Who',
    'Hello',
    'you',
    '{0} left {1}',
    'At once',
  ])
})
