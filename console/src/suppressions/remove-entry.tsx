import type { Suppression } from '#proto/workspace/v1/workspace_pb.js'
import { useConsole } from '../console-context.ts'
import { DialogButton } from '../ui/dialog.tsx'
import { RowText } from '../ui/page.tsx'

export interface RemoveEntryProps {
  suppression: Suppression
  onChanged: (text: string) => void
}

/** Button that removes an entry after a confirmation. */
export function RemoveEntry({ suppression, onChanged }: RemoveEntryProps) {
  const { api } = useConsole()
  const { suppressionId } = suppression
  return (
    <DialogButton
      button="Remove"
      label={`Remove entry ${suppressionId}`}
      title="Remove this entry?"
      action="Remove entry"
      danger
      onConfirm={async () => {
        await api.workspaces.removeSuppressions({ suppressionIds: [suppressionId] })
        onChanged('Entry removed.')
      }}
    >
      <p>The person can be contacted again. Deliveries that the entry ended stay ended; you can retry them.</p>
      <SuppressionFacts suppression={suppression} />
    </DialogButton>
  )
}

export function SuppressionFacts({
  suppression: { suppressionId, addedBy, reason },
}: Pick<RemoveEntryProps, 'suppression'>) {
  return (
    <RowText title={reason || 'No reason given'}>
      added by {addedBy} · <span class="mono">{suppressionId}</span>
    </RowText>
  )
}
