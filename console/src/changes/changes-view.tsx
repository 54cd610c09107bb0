import { useConsole } from '../console-context.ts'
import { fieldWords } from '../failures.ts'
import { backTo } from '../router.ts'
import { PagedList, useLoad, usePages } from '../ui/load.tsx'
import { Empty, Page, When } from '../ui/page.tsx'

const actions: Record<string, string> = {
  UpdateWorkspace: 'Workspace changed',
  CreateInstallation: 'Website created',
  UpdateInstallation: 'Website changed',
  SetLogo: 'Logo of a website changed',
  RotateIdentitySecret: 'Identity secret rotated',
  SetConnectionStatus: 'Connection status changed',
  AddSuppressions: 'People added to do not contact',
  RemoveSuppressions: 'People removed from do not contact',
  BanVisitor: 'Visitor banned',
  UnbanVisitor: 'Ban lifted',
  DeleteInstallation: 'Website deleted',
  DeleteConnection: 'Connection deleted',
  DeleteSubscription: 'Destination deleted',
  DeleteHook: 'Event hook deleted',
  DeleteWorkspace: 'Workspace deleted',
  RestoreWorkspace: 'Workspace restored',
  RevokeSession: 'Session of a visitor ended',
}

/**
 * Returns a value in the words of its form: the entries of a list, or the labels of a form. The JSON may be cut, so
 * it cannot be parsed as a whole.
 */
export function valueText(value: string): string {
  if (/^(true|\w+_ENABLED)$/.test(value)) return 'Enabled'
  if (/^(false|\w+_DISABLED)$/.test(value)) return 'Disabled'
  if (!/^[[{]/.test(value)) return value
  const shown = /^(\[|\{"texts":\[)"/.test(value)
    ? /(?<=[[,])"(\\.|[^\\"])+"(?=[,\]])/g
    : /(?<="label":)"(\\.|[^\\"])+"/g
  const texts = value.match(shown) ?? []
  return texts.map((text) => JSON.parse(text)).join(', ') || 'Changed'
}

export const actionText = (action: string) => actions[action] ?? action

/** Returns a function that gives the name of a member, also of a former one. Other actors keep their own. */
export function useActorNames() {
  const { api } = useConsole()
  const { value } = useLoad(() => api.operators.listOperators({ includeRemoved: true }), [])
  return (actor: string) => value?.operators.find(({ operatorId }) => operatorId === actor)?.name ?? actor
}

export function ChangesView() {
  const { api } = useConsole()
  const nameOf = useActorNames()
  const list = usePages((pageToken) => api.workspaces.listPolicyChanges({ pageToken }), 'changes', [])
  return (
    <Page
      title="Changes"
      back={backTo('workspace')}
      lead="Who changed websites, connections, the do-not-contact list and bans."
    >
      <PagedList list={list} what="changes" empty={<Empty icon="info" title="No changes yet" />}>
        {({ changeId, action, actor, at, target, confirmed, settings }) => (
          <li key={changeId} class="table-row">
            <span class="table-main">
              <span class="table-title">{actionText(action)}</span>
              {settings.length > 0 && (
                <span class="hint breakable">
                  {settings.map(({ name, value }) => `${fieldWords(name.split('.'))}: ${valueText(value)}`).join(', ')}
                </span>
              )}
              <span class="hint breakable">
                by {nameOf(actor)} {target && <code>· {target}</code>}
              </span>
            </span>
            {!confirmed && <span class="tag warn">Result unknown</span>}
            <When at={at} full />
          </li>
        )}
      </PagedList>
    </Page>
  )
}
