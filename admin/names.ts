import { allPages } from '../contract/all-pages.ts'
import { type Call, type DemoValues, UsageError } from './command.ts'
import type { Services } from './services.ts'

type Values = Call['values']

const workspacesPerPage = 1_000

/**
 * Replaces the names of workspace, subscription and hook in the flags by ids. The host of its destination also
 * names a subscription or hook. A URL with a path names none, because paths are not known. Errors: `UsageError` if
 * nothing has the name, or several things have it.
 */
export async function resolveNames(
  { workspaces, leads, hooks }: Services,
  values: Values,
  { workspaceId: demoWorkspaceId }: DemoValues,
): Promise<Values> {
  const resolved = { ...values }
  const { workspaceId: workspace, subscriptionId: subscription, hookId: hook } = values
  if (isName(workspace, 'ws_')) {
    resolved.workspaceId = only('workspace', workspace, await workspacesNamed(workspaces, workspace))
  }
  const workspaceId = (resolved.workspaceId as string | undefined) ?? demoWorkspaceId
  // Commands for deliveries take hooks too, by id.
  if (isName(subscription, 'sub_', 'hook_')) {
    const known = await allSubscriptions(leads, workspaceId)
    resolved.subscriptionId = only('subscription', subscription, idsAt(known, 'subscriptionId', subscription))
  }
  if (isName(hook, 'hook_', 'sub_')) {
    const pages = await allPages((pageToken) => hooks.listHooks({ workspaceId, pageToken }))
    const known = pages.flatMap((page) => page.hooks)
    resolved.hookId = only('hook', hook, idsAt(known, 'hookId', hook))
  }
  return resolved
}

export async function allSubscriptions(leads: Services['leads'], workspaceId: string | undefined) {
  const pages = await allPages((pageToken) => leads.listSubscriptions({ workspaceId, pageToken }))
  return pages.flatMap(({ subscriptions }) => subscriptions)
}

async function workspacesNamed(workspaces: Services['workspaces'], wanted: string) {
  const ids: string[] = []
  for (let afterWorkspaceId = '', isLast = false; !isLast; ) {
    const { workspaces: page } = await workspaces.listWorkspaces({ limit: workspacesPerPage, afterWorkspaceId })
    ids.push(...page.flatMap(({ name, workspaceId }) => (name === wanted ? workspaceId : [])))
    isLast = page.length < workspacesPerPage
    afterWorkspaceId = page.at(-1)?.workspaceId ?? ''
  }
  return ids
}

const isName = (value: unknown, ...prefixes: string[]): value is string =>
  typeof value === 'string' && !prefixes.some((prefix) => value.startsWith(prefix))

const idsAt = <Id extends string>(
  known: ({ name: string; destinationUrl: string } & Record<Id, string>)[],
  idField: Id,
  wanted: string,
) =>
  known.flatMap((each) => {
    const { host, origin } = new URL(each.destinationUrl)
    return [each.name, each.destinationUrl, host, origin].includes(wanted) ? each[idField] : []
  })

function only(flag: string, name: string, ids: string[]) {
  const [id] = ids
  if (id === undefined) throw new UsageError(`no ${flag} is named ${JSON.stringify(name)}`)
  if (ids.length > 1)
    throw new UsageError(`several ${flag}s are named ${JSON.stringify(name)}; use one of their ids: ${ids.join(', ')}`)
  return id
}
