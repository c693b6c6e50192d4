// What a checkpoint shows that takes one plain decision.

export const plain_steering = {
  answer_schema: null,
  answer: null,
  required_approvals: 1,
  required_rejections: 1,
  approvals: 0,
  rejections: 0,
  approvers: null,
  escalate: null,
  escalated: 0,
  comments: 0,
  editable: false,
  edited_payload: null,
  effective_payload: null,
  permit_expires_at: null,
  uses: 1,
  uses_left: 1,
  effect_id: null,
}
