import fc from 'fast-check'
import { expect, it } from 'vitest'
import { forAll } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { newId } from '../ids.ts'
import { agentOperationIn, operationKeys } from '../log-event.ts'
import { operationId } from '../rules.ts'

const eventTypes = [
  'session.revoked',
  'session.expired',
  'session.closed',
  'session.identified',
  'visitor.banned',
  'connection.disabled',
  'navigation.requested',
  'screenshot.cancelled',
] as const
const ids = (['ses', 'ses', 'msg', 'msg', 'typ', 'cmd', 'scr'] as const).map((prefix) => newId(prefix))
const states = ['sent', 'delivered', 'read'] as const
const writers = Object.keys(operationKeys)

const idOf = (...prefixes: string[]) => fc.constantFrom(...ids.filter((id) => prefixes.includes(id.slice(0, 3))))
const type = fc.constantFrom(...eventTypes)
/**
 * Operation ids that a visitor or an agent may choose. They include every word that the service
 * itself writes in operation keys.
 */
const chosen = fc.oneof(
  fc.constantFrom(
    ...ids,
    ...eventTypes,
    ...states,
    ...writers,
    'agent',
    'state',
    'stopped',
    '1',
    'ses_1:session.revoked',
  ),
  fc.stringMatching(/^[A-Za-z0-9._:-]{1,128}$/),
)
const key = fc.oneof(
  fc.tuple(fc.constant('visitorMessage' as const), idOf('ses'), chosen),
  fc.tuple(fc.constant('agentMessage' as const), chosen),
  fc.tuple(fc.constant('session' as const), idOf('ses'), type),
  fc.tuple(fc.constant('messageState' as const), idOf('msg'), fc.constantFrom(...states)),
  fc.tuple(fc.constant('assignment' as const), fc.nat(20)),
  fc.tuple(fc.constant('typing' as const), idOf('typ'), fc.constantFrom('stopped', 'started 0', 'started 1')),
  fc.tuple(fc.constant('command' as const), idOf('cmd', 'scr'), type),
)
const make = ([writer, ...parts]: [keyof typeof operationKeys, ...unknown[]]) =>
  (operationKeys[writer] as (...parts: unknown[]) => string)(...parts)

it('operation keys are equal only for the same operation of the same writer', () => {
  forAll([fc.array(key, { minLength: 2, maxLength: 60 })], runs(1_000, 10), (operations) => {
    const byKey = Map.groupBy(operations, make)
    for (const same of byKey.values()) for (const each of same) expect(each).toEqual(same[0])
  })
})

it('operation ids of visitors and agents are rejected if they contain white space', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary-ascii' }), (text) => operationId(text) !== undefined || !/\s/.test(text)),
  )
})

it('operation keys of visitors and agents have the format of the first version', () => {
  expect(operationKeys.visitorMessage('ses_1', 'op')).toBe('ses_1 op')
  expect(operationKeys.agentMessage('op')).toBe('agent op')
})

it('agentOperationIn returns an operation id only for the key of an agent’s message', () => {
  forAll([key], {}, (operation) => {
    const found = agentOperationIn(make(operation) as ReturnType<typeof operationKeys.agentMessage>)
    expect(found).toBe(operation[0] === 'agentMessage' ? operation[1] : undefined)
  })
})
