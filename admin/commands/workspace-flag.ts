/** Flag of commands that need a workspace. */
export const workspace = { type: 'string', required: true, description: 'the workspace’s id or name' } as const
