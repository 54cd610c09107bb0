import { feedEventTypes } from '../../contract/event-kinds.ts'
import { command, type Group } from '../command.ts'
import { oneOf } from '../usage.ts'
import { deletion } from './deletion.ts'
import { destinationUrl, header, limitsOf, notFound, pageFlags, rate, statuses, toHeader } from './destination-flags.ts'
import { workspace } from './workspace-flag.ts'

const event = {
  type: 'string',
  field: 'eventTypes',
  multiple: true,
  description: `an event to send; repeatable: ${feedEventTypes.join(', ')}`,
} as const
/** Flags that select a hook by its id, or by its workspace and destination. */
const named = {
  hook: { type: 'string', required: true, description: 'the hook’s id, or the host of its destination' },
  workspace: { type: 'string', description: 'the hook’s workspace, if it is named by its destination' },
} as const

export const hooks: Group = {
  create: command({
    summary: 'Send events to a destination; the secret is shown only now',
    flags: {
      workspace,
      url: { ...destinationUrl, required: true },
      event: { ...event, required: true },
      header,
      rate,
      'not-found': notFound,
    },
    run: ({ hooks }, { workspace, url, event, header = [], rate, 'not-found': notFound }) =>
      hooks.createHook({
        workspaceId: workspace,
        destinationUrl: url,
        eventTypes: event,
        headers: header.map(toHeader),
        ...limitsOf(rate, notFound),
      }),
  }),
  list: command({
    summary: 'List the event hooks of a workspace, newest first',
    flags: { workspace, ...pageFlags },
    run: ({ hooks }, { workspace: workspaceId, limit, page = '' }) =>
      hooks.listHooks({ workspaceId, limit: limit === undefined ? undefined : Number(limit), pageToken: page }),
  }),
  update: command({
    summary: 'Change a hook; given events and headers replace the present ones',
    flags: {
      ...named,
      url: { ...destinationUrl, description: 'the destination; as for `subscriptions update`' },
      event,
      header: { ...header, description: 'as for `subscriptions update`' },
      status: { type: 'string', description: 'enabled or disabled' },
      rate: { ...rate, description: 'requests per second, at most; 0 for no limit' },
      'not-found': notFound,
    },
    run: ({ hooks }, { hook, url, event, header, status, rate, 'not-found': notFound }) =>
      hooks.updateHook({
        hookId: hook,
        destinationUrl: url,
        eventTypes: event && { types: event },
        headers: header && { headers: header.filter((text) => text !== '').map(toHeader) },
        status: status === undefined ? undefined : oneOf('status', status, statuses),
        ...limitsOf(rate, notFound),
      }),
  }),
  delete: deletion({
    what: 'a hook with its deliveries',
    flags: named,
    run: ({ hooks }, { hook }) => hooks.deleteHook({ hookId: hook }),
  }),
  rotate: command({
    summary: 'Create a new secret, shown only now; as `subscriptions rotate`',
    flags: { ...named, overlap: { type: 'string', description: 'seconds; default 24 hours' } },
    run: ({ hooks }, { hook, overlap }) =>
      hooks.rotateHookSecret({ hookId: hook, overlapSeconds: overlap === undefined ? undefined : Number(overlap) }),
  }),
  activate: command({
    summary: 'Let a rotated secret sign `X-Service-Webhook-Signature`',
    flags: {
      ...named,
      secret: { type: 'string', required: true, description: 'the secret’s id, from `hooks list`' },
    },
    run: ({ hooks }, { hook, secret }) => hooks.activateHookSecret({ hookId: hook, secretId: secret }),
  }),
}
