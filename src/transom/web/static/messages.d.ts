/**
 * The messages of a page that shows Views: those that it exchanges with the host (`transom.web.stage`
 * has the other end), and those with the sandbox around each View (`sandbox.ts`). What a View and its
 * host say to each other is passed on as it is, and is not described here.
 */
export type DisplayMode = "inline" | "fullscreen" | "pip";
/**
 * Who a View is: its key, the Host's id of it, what it calls itself, its server, and the client of its
 * Host. The title is the words of a stranger: see `attribution` in `view_parts.ts`.
 */
export interface ViewLabel {
    view: string;
    shown?: string;
    title?: string;
    server: string;
    client?: string;
}
/** A tool that always runs when the model, or the View, calls it. */
export interface GrantedTool {
    tool: string;
    by: "model" | "view" | "drive";
    shown: string;
}
/** The first message of a page on a socket. */
export interface Hello {
    token: string;
    page: string | null;
    received: number;
}
/** What the host answers it with. */
export interface Welcome {
    page: string;
    received: number;
    resumed: boolean;
}
/** The sandbox of a View. */
export interface SandboxAddress {
    origin: string;
    /** The origin of the guard: see `guard.ts`. */
    guard: string;
    number: number;
    allow: string;
}
/** Load the sandbox that the next View may have: the one that is mounted with its number. */
export interface Prepare extends SandboxAddress {
    do: "prepare";
}
/** Show a View, in a sandbox at its origin. */
export interface Mount extends ViewLabel, SandboxAddress {
    do: "mount";
    uri: string;
    html: string;
    border: boolean;
}
/** Show that a View is gone, and why. */
export interface Gone extends ViewLabel {
    do: "gone";
    reason: string;
    failed: boolean;
    about: string;
}
/** Show that a View does not respond, or for how many seconds it has been busy; "" and null: neither. */
export interface Trouble {
    do: "trouble";
    view: string;
    reason: string;
    /** Whether its page has failed, and may still connect. */
    failed: boolean;
    busyFor: number | null;
}
/** Show whether a View stays open, which tools always run, and which are left out and why. */
export interface Marks {
    do: "marks";
    view: string;
    pinned: boolean;
    grants: GrantedTool[];
    leftOut: string;
}
/** Show what a View says of itself. */
export interface Named {
    do: "named";
    view: string;
    title: string;
    name: string;
    version: string;
}
/** A tool that a View offers the model, or has disabled, with the reason or "". */
export interface OfferedTool {
    name: string;
    about: string;
    disabled?: true;
}
/** Show the tools of a View. */
export interface Offered {
    do: "tools";
    view: string;
    tools: OfferedTool[];
}
/** Have the user save a file; `data` is base64. */
export interface DownloadedFile {
    do: "download";
    name: string;
    mime: string;
    data: string;
}
/** A value that may be chosen, and what the user reads for it. */
export interface FieldOption {
    value: string;
    title: string;
}
/** A field of a form that a server asks for: `ElicitField` in elicit_form.py. */
export interface FormField {
    name: string;
    kind: "text" | "number" | "integer" | "boolean" | "choice" | "choices";
    title: string;
    description?: string;
    required?: boolean;
    default?: string | number | boolean | string[];
    format?: "email" | "uri" | "date" | "date-time";
    minimum?: number;
    maximum?: number;
    options?: FieldOption[];
}
/** What the user entered, by the name of the field; null: nothing. */
export type FormFields = Record<string, string | number | boolean | string[] | null>;
/** What may be asked of the user, by kind. */
export interface QuestionKinds {
    /**
     * Whether the model, or the View, may call a tool; `opens`: a tool that opens a View; `drives`: whether
     * the model may look at the View's page, or use an element of it.
     */
    approve: {
        tool: string;
        arguments: Record<string, unknown>;
        description?: string;
        by?: "model" | "view";
        opens?: boolean;
        drives?: boolean;
        /** The user always allowed it, and it is another one now. */
        changed?: boolean;
        /** What the user always allows this View. */
        granted?: string[];
    };
    link: {
        url: string;
    };
    download: {
        files: {
            name: string;
            bytes: number;
        }[];
    };
    pin: {
        reason: string;
    };
    mode: {
        mode: DisplayMode;
    };
    /** What a server wants to know, about no View: the fields of a form, or a page to be visited. */
    elicit: {
        message: string;
        url: string | null;
        fields: FormField[];
    };
}
export type QuestionKind = keyof QuestionKinds;
/** A question to the user about a View, or of a server. */
export type Question = {
    [Kind in QuestionKind]: ViewLabel & QuestionKinds[Kind] & {
        kind: Kind;
    };
}[QuestionKind];
/**
 * `allow`, `always` or `deny` for `approve`; yes or no for the others. For `elicit` also `cancel` if the
 * user just closes it; a yes to a form is what they entered.
 */
export type Answer = "allow" | "always" | "deny" | "cancel" | boolean | FormFields;
/** Read or use a View as its user would. */
export interface Drive {
    do: "drive";
    view: string;
    id: number;
    request: DriveRequest | Probe;
}
export type Ask = Question & {
    do: "ask";
    id: number;
};
/** Messages for the page of a Stage and for an application's alike. */
export type ViewMessage = Prepare | Mount | Gone | Trouble | Marks | Named | Offered | DownloadedFile | Ask | Drive | {
    do: "unmount";
    view: string;
} | {
    do: "mode";
    view: string;
    mode: DisplayMode;
} | {
    do: "clear";
    origins: string[];
} | {
    do: "unask";
    id: number;
};
/** Messages for the page of a Stage alone: another agent's Views, and a line for the user. */
export type StageMessage = {
    do: "join";
    origin: string;
    token: string;
} | {
    do: "notice";
    text: string;
};
/** A View that the page may show, if it has a place for it; `new`: it opened just now. */
export interface Offer {
    do: "offer";
    view: string;
    new?: boolean;
    server?: string;
    tool?: string;
}
/** Messages for the page of an application alone: which of its places a View can be in. */
export type PlaceMessage = Offer | {
    do: "elsewhere";
    view: string;
} | {
    do: "absent";
    view: string;
    reason: string;
    again: boolean;
};
/**
 * Messages for the page of `transom dev` alone: the value of a panel, new entries of a log (`clear`: and
 * none of the old ones), and the answer to a request.
 */
export type DevMessage = {
    do: "panel";
    name: string;
    value: unknown;
} | {
    do: "log";
    name: string;
    entries: unknown[];
    clear?: boolean;
} | {
    do: "reply";
    id: number;
    result?: unknown;
    error?: string;
};
export type HostMessage = ViewMessage | StageMessage | PlaceMessage | DevMessage;
/** What the page of an application wants with a View: see `transom.web.stage.Wish`. */
export type Wish = "free" | "take" | "again" | "gone";
export interface Size {
    width: number;
    height?: number;
    maxHeight?: number;
}
/** What the page knows about its user. */
export interface Surroundings {
    theme: "light" | "dark";
    locale: string;
    timeZone: string;
    userAgent: string;
    platform: "web";
    deviceCapabilities: {
        touch: boolean;
        hover: boolean;
    };
    containerDimensions?: Partial<Size>;
    safeAreaInsets?: {
        top: number;
        right: number;
        bottom: number;
        left: number;
    };
}
/** `value` of `broken`: the browser did not load its frame. */
export type PageMessage = {
    do: "surroundings";
    value: Surroundings;
} | {
    do: "answer";
    id: number;
    value: Exclude<Answer, FormFields>;
    fields?: FormFields;
} | {
    do: "place";
    view: string;
    value: Wish;
} | {
    do: "mode";
    view: string;
    mode: DisplayMode;
    size: Size;
} | {
    do: "withdraw";
    view: string;
    tool: string;
    by: GrantedTool["by"];
} | {
    do: "broken";
    view: string;
    reason: string;
    value?: true;
} | {
    do: "refused" | "vanished";
    view: string;
    reason: string;
} | {
    do: "closed" | "reload" | "retry";
    view: string;
}
/** The answer to `Drive`, as JSON that nobody has looked into: the View may have written it. */
 | {
    do: "driven";
    view: string;
    id: number;
    answer: string;
} | {
    do: "control";
    view: string;
    value: boolean;
}
/** What the author asks for on the page of `transom dev`. */
 | {
    do: "request";
    request: {
        id: number;
        name: string;
        arguments: object;
    };
};
/** What the frames around a View, and the View, may do. */
export declare const FLAGS = "allow-scripts allow-same-origin allow-forms";
/** To the guard, in its address or, if it was there before, as a message: the sandbox to load. */
export interface SandboxPlace {
    src: string;
    allow: string;
}
/** To the guard: whether the user has pressed something in it just now; it answers on the port. */
export declare const PRESSED = "pressed";
/** What it answers: whether there was a press, and none elsewhere that may have come after it. */
export interface Pressed {
    isRecent: boolean;
    isLast: boolean;
}
/** To the guard: the user has pressed something elsewhere. */
export declare const ELSEWHERE = "elsewhere";
/** To the guard, from its sandbox: lay your page out. A browser puts that off until it draws. */
export declare const LAY_OUT = "lay-out";
/** The sandbox is loaded: it needs the View. */
export declare const PROXY_READY = "ui/notifications/sandbox-proxy-ready";
/** The View for the sandbox. */
export declare const RESOURCE_READY = "ui/notifications/sandbox-resource-ready";
/** The document of the View is not in the sandbox any more. */
export declare const VIEW_GONE = "ui/notifications/sandbox-view-gone";
/** Read or use the View: has a `SandboxDrive`. */
export declare const DRIVE = "ui/notifications/sandbox-drive";
/** What came of it: has a `SandboxDriven`. */
export declare const DRIVEN = "ui/notifications/sandbox-driven";
/** The user pressed Tab in the View. */
export declare const TAB_PRESSED = "ui/notifications/sandbox-tab-pressed";
/** What `RESOURCE_READY` has. */
export interface SandboxedView {
    html: string;
    allow: string;
}
export interface SandboxDrive {
    id: number;
    request: DriveRequest | Probe;
}
export interface SandboxDriven {
    id: number;
    answer: string;
}
export type ActionName = "click" | "double_click" | "type" | "clear" | "select" | "check" | "uncheck" | "press" | "set" | "scroll_into_view" | "hover" | "drag_to" | "submit" | "upload";
/** What is to be done, and to which element; `role` and `name` as the user has approved them. */
export interface Action {
    ref: string;
    action: ActionName;
    value?: string | null;
    to?: string | null;
    role?: string | null;
    name?: string | null;
    /** What the user was told that `to` is. */
    onto?: {
        role: string;
        name: string;
    } | null;
    /** A press with a real mouse follows: one that meets something else is held back. */
    aim?: boolean;
}
/** What the page shows: all of it in short, what has a text, or what is in one element. */
export interface Look {
    op: "look";
    find?: string | null;
    under?: string | null;
    /** Outline for a moment what was read. */
    show?: boolean;
}
/**
 * `target` says where to press with a real mouse, `focus` prepares an element for a real keyboard, and
 * `settle` waits for what comes of it; `act` does all that by itself. `mark` outlines an element until
 * the next one.
 */
export type DriveRequest = Look | (Action & {
    op: "target" | "act" | "focus";
}) | {
    op: "settle";
} | {
    op: "hide";
    on: boolean;
} | {
    op: "mark";
    ref?: string | null;
};
/** Answer at once: what is in an endless loop does not. */
export interface Probe {
    op: "alive";
}
/** The method of what may be a message of JSON-RPC: a stranger has posted it. */
export declare const methodOf: (data: unknown) => unknown;
/** Whether a message is about the sandbox itself, and so neither for the View nor for its host. */
export declare function isAboutSandbox(data: unknown): boolean;
