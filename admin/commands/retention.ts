import { command } from '../command.ts'
import { UsageError } from '../usage.ts'
import { workspace } from './workspace-flag.ts'

const period = (what: string) => ({ type: 'string', description: `${what}: days, forever or default` }) as const

/** Sets how long a workspace keeps its data. */
export const retention = command({
  summary: 'Set how long data of a workspace is kept; older data is removed for good',
  flags: {
    workspace,
    conversations: period('after the last message'),
    leads: period('after the capture'),
    'empty-sessions': period('sessions without a message, after their end'),
    audit: period('audit entries'),
    'held-deliveries': period('deliveries of disabled subscriptions'),
  },
  run: (
    { workspaces },
    { workspace, conversations, leads, 'empty-sessions': emptySessions, audit, 'held-deliveries': heldDeliveries },
  ) => {
    const given = Object.entries({ conversations, leads, emptySessions, audit, heldDeliveries })
    const retention = Object.fromEntries(
      given.flatMap(([kind, text]) => (text === undefined ? [] : [[kind, readPeriod(text)]])),
    )
    return workspaces.updateWorkspace({ workspaceId: workspace, retention })
  },
})

function readPeriod(text: string) {
  if (text === 'default') return {}
  if (text === 'forever') return { period: { case: 'forever' as const, value: true } }
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`a period is a number of days, forever or default, not "${text}"`)
  return { period: { case: 'days' as const, value: Number(text) } }
}
