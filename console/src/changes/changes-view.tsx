import type { PolicyChange } from '#proto/workspace/v1/workspace_pb.js'
import { backTo } from '../areas.ts'
import { useConsole } from '../console-context.ts'
import { PagedList, usePages } from '../ui/load.tsx'
import { Empty, Page, When } from '../ui/page.tsx'
import { actionText, settingsText } from './change-words.ts'

/** Lists who changed which policy of the workspace. */
export function ChangesView() {
  const { api } = useConsole()
  const list = usePages(
    (pageToken) => api.workspaces.listPolicyChanges({ pageToken }),
    'changes',
    ({ changeId }) => changeId,
    [],
  )
  return (
    <Page
      title="Changes"
      back={backTo('workspace')}
      lead="Who changed websites, connections, the do-not-contact list and bans."
    >
      <PagedList list={list} name="changes" empty={<Empty icon="info" title="No changes yet" />}>
        {(change) => <ChangeRow key={change.changeId} change={change} />}
      </PagedList>
    </Page>
  )
}

function ChangeRow({ change }: { change: PolicyChange }) {
  const { action, actor, at, target, confirmed } = change
  const settings = settingsText(change)
  return (
    <li class="table-row">
      <span class="table-main">
        <span class="table-title">{actionText(action)}</span>
        {settings && <span class="hint mono breakable">{settings}</span>}
        <span class="hint breakable">
          by {actor}
          {target && (
            <>
              {' · '}
              <span class="mono">{target}</span>
            </>
          )}
        </span>
      </span>
      {!confirmed && <span class="tag warn">Result unknown</span>}
      <When at={at} full />
    </li>
  )
}
