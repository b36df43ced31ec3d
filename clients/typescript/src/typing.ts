/** The types of a request and of its answer, taken from the OpenAPI document. */
import type { paths } from "./schema.ts";

/** The methods that a path has. */
export type MethodOf<Path extends keyof paths> = {
  [Method in keyof paths[Path]]: paths[Path][Method] extends { responses: unknown } ? Method : never;
}[keyof paths[Path]] &
  string;

type Content<Part> = Part extends { content: { "application/json": infer Json } } ? Json : never;

/** What a path answers when all is well. */
export type Answer<Path extends keyof paths, Method extends MethodOf<Path>> = paths[Path][Method] extends {
  responses: { 200: infer Response };
}
  ? Content<Response>
  : never;

/** What a path takes in its body. */
export type Body<Path extends keyof paths, Method extends MethodOf<Path>> = paths[Path][Method] extends {
  requestBody?: infer Request;
}
  ? Content<NonNullable<Request>>
  : undefined;

/** What a path takes in its query. */
export type QueryOf<Path extends keyof paths, Method extends MethodOf<Path>> = paths[Path][Method] extends {
  parameters: { query?: infer Query };
}
  ? Query
  : undefined;
