// Built from js/src by `make js`.
import{connectElements as e}from"./views.js";e();
