import type { PolicyChange } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { fieldWords } from '../failures.ts'
import { backTo } from '../router.ts'
import { PagedList, usePages } from '../ui/load.tsx'
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

const valueText = (value: string) =>
  /^(true|\w+_ENABLED)$/.test(value) ? 'Enabled' : /^(false|\w+_DISABLED)$/.test(value) ? 'Disabled' : value

export const actionText = (action: string) => actions[action] ?? action

export function ChangesView() {
  const { api } = useConsole()
  const list = usePages((pageToken) => api.workspaces.listPolicyChanges({ pageToken }), 'changes', [])
  return (
    <Page
      title="Changes"
      back={backTo('workspace')}
      lead="Who changed websites, connections, the do-not-contact list and bans."
    >
      <PagedList list={list} what="changes" empty={<Empty icon="info" title="No changes yet" />}>
        {(change) => <ChangeRow key={change.changeId} change={change} />}
      </PagedList>
    </Page>
  )
}

function ChangeRow({ change }: { change: PolicyChange }) {
  const { action, actor, at, target, confirmed } = change
  const settings = change.settings.map(({ name, value }) => `${fieldWords(name.split('.'))}: ${valueText(value)}`)
  return (
    <li class="table-row">
      <span class="table-main">
        <span class="table-title">{actionText(action)}</span>
        {settings.length > 0 && <span class="hint breakable">{settings.join(', ')}</span>}
        <span class="hint breakable">
          by {actor} {target && <span class="mono">· {target}</span>}
        </span>
      </span>
      {!confirmed && <span class="tag warn">Result unknown</span>}
      <When at={at} full />
    </li>
  )
}
