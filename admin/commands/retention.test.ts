import { describe, expect, it } from 'vitest'
import { WorkspaceService } from '#proto/workspace/v1/workspace_pb.js'
import { type Call, type Host, must, readCall, text } from '../command.ts'
import type { Services } from '../services.ts'
import { deletion } from './flags.ts'
import { workspaces } from './workspaces.ts'

const host = {} as Host

/** Returns the request that the command sends. */
async function sent(values: Record<string, string>) {
  const requests: unknown[] = []
  const updateWorkspace = async (request: unknown) => {
    requests.push(request)
    return { $typeName: 'service.workspace.v1.UpdateWorkspaceResponse' as const }
  }
  const services = { workspaces: { updateWorkspace } } as unknown as Services
  const args = Object.entries({ workspace: 'ws_1', ...values }).map(([name, value]) => `--${name}=${value}`)
  const call = readCall(['workspaces', 'retention', ...args], { workspaces }) as Call
  await call.command.run(services, call.values as never, {}, host)
  return requests
}

describe('the command `workspaces retention`', () => {
  it('sends only the given periods', async () => {
    expect(await sent({ conversations: '30', 'empty-sessions': 'forever', leads: 'default' })).toEqual([
      {
        workspaceId: 'ws_1',
        retention: {
          conversations: { period: { case: 'days', value: 30 } },
          emptySessions: { period: { case: 'forever', value: true } },
          leads: {},
        },
      },
    ])
  })

  it.each(['', '-1', '1.5', 'none', '1e3'])('rejects the period %j', async (period) => {
    await expect(sent({ audit: period })).rejects.toThrow('a period is a number of days')
  })
})

it('a command that deletes runs only with --yes', async () => {
  const deleted: unknown[] = []
  const unary = async (...[, , , , request]: Parameters<Services['transport']['unary']>) => {
    deleted.push(request)
    return { message: {} }
  }
  const services = { transport: { unary } } as unknown as Services
  const command = deletion(WorkspaceService.method.deleteWorkspace, { workspace: must(text('its id', 'workspaceId')) })
  const run = async (values: object) => command.run(services, values as never, {}, host)
  await expect(run({ workspaceId: 'a' })).rejects.toThrow('confirm with --yes')
  expect(deleted).toEqual([])
  expect(await run({ workspaceId: 'a', yes: true })).toEqual({ deleted: true })
  expect(deleted).toEqual([{ workspaceId: 'a', yes: true }])
})

it.each(['', 'abc', '-1', '1.5', '9999999999'])('a flag with a number rejects %j', (given) => {
  expect(() => readCall(['workspaces', 'list', `--limit=${given}`], { workspaces })).toThrow(
    '--limit must be a whole number',
  )
})
