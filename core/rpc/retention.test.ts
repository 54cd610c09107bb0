import { timestampMs } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import type { Retention } from '#proto/workspace/v1/workspace_pb.js'
import { inboxOf } from '../conversations/inbox.ts'
import { listMessages } from '../conversations/messages.ts'
import { openBackups } from '../database/backup.ts'
import { newToken } from '../mongodb/leases.ts'
import { sweepOldData } from '../privacy/retention.ts'
import { send, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'

const cores = testCores({ count: 2 })

const clients = () => clientsOf(cores.core, cores.workspaceId)
const days = (value: number) => ({ period: { case: 'days' as const, value } })
const forever = (value = true) => ({ period: { case: 'forever' as const, value } })

/** Returns each period as a text: its days or `forever`, with `by default` if it is the default. */
const textOf = (retention: Retention | undefined) =>
  Object.fromEntries(
    Object.entries(retention ?? {}).flatMap(([kind, period]) => {
      if (kind.startsWith('$')) return []
      const { period: one, isDefault } = period as NonNullable<Retention['conversations']>
      return [[kind, `${one.case === 'days' ? one.value : one.case}${isDefault ? ' by default' : ''}`]]
    }),
  )

it('a workspace is returned with the times of the last backup and drill of the service', async () => {
  const { workspaces } = await clients()
  expect((await workspaces.getWorkspace({})).lastBackups).not.toHaveProperty('backup')
  const { uri, name } = cores
  const backups = await openBackups({ uri, name, timeoutMs: 5_000 })
  await backups.record('backup').finally(() => backups.close())
  const { lastBackups } = await workspaces.getWorkspace({})
  expect(Math.abs(timestampMs(lastBackups!.backup!) - Date.now())).toBeLessThan(60_000)
  expect(lastBackups).not.toHaveProperty('drill')
})

describe('the retention of a workspace', () => {
  it('has the documented defaults, and a change of one period leaves the others unchanged', async () => {
    const { workspaces } = await clients()
    const periods = async () => textOf((await workspaces.getWorkspace({})).workspace?.retention)
    expect(await periods()).toEqual({
      conversations: 'forever by default',
      leads: 'forever by default',
      emptySessions: '1 by default',
      audit: 'forever by default',
      heldDeliveries: 'forever by default',
    })
    await workspaces.updateWorkspace({ retention: { conversations: days(30), emptySessions: forever() } })
    await workspaces.updateWorkspace({ name: 'Shop of Ada', retention: { leads: days(3_650), emptySessions: {} } })
    expect((await workspaces.getWorkspace({})).workspace?.name).toBe('Shop of Ada')
    expect(await periods()).toMatchObject({
      conversations: '30',
      leads: '3650',
      emptySessions: '1 by default',
      audit: 'forever by default',
    })
    await workspaces.updateWorkspace({ retention: { conversations: {}, leads: {} } })
  })

  it.each([
    ['conversations', days(0), 'minimum', 'days'],
    ['leads', days(3_651), 'maximum', 'days'],
    ['emptySessions', days(2 ** 32 - 1), 'maximum', 'days'],
    ['heldDeliveries', forever(false), 'const', 'forever'],
  ] as const)('is rejected if the period of %s is invalid (%j)', async (kind, period, rule, name) => {
    const { workspaces } = await clients()
    const before = textOf((await workspaces.getWorkspace({})).workspace?.retention)
    const error = await workspaces.updateWorkspace({ retention: { [kind]: period } }).catch(ConnectError.from)
    expect(error).toMatchObject({ code: Code.InvalidArgument })
    const [detail] = (error as ConnectError).findDetails(ErrorInfoSchema)
    expect(detail?.issues.map(({ path, rule }) => [path, rule])).toEqual([[`/retention/${kind}/${name}`, rule]])
    expect(textOf((await workspaces.getWorkspace({})).workspace?.retention)).toEqual(before)
  })

  it('takes effect on all cores once it is stored, even if no wake-up is sent', async () => {
    const visitor = await cores.newVisitor()
    await send(cores.core, visitor, 'hello')
    await inboxOf(cores.core).noted()
    cores.advance(3 * 86_400)
    // After this sweep, the next sweep is due in an hour. The change of the retention makes the
    // next sweep due at once. The change is written directly to the store, so no wake-up is sent.
    await sweepOldData(cores.core)
    await cores.core.db.workspaces.updateOne(
      { _id: cores.workspaceId },
      { $set: { 'retention.conversations': 1, sweepAt: new Date(cores.now()), sweepToken: newToken() } },
    )
    // The job of the sweep runs each minute.
    await sweepOldData(cores.core)
    for (const core of cores.cores)
      await expect
        .poll(() => listMessages(core, visitor.conversationId, {}).catch(({ message }) => message))
        .toBe('NotFound')
  })
})
